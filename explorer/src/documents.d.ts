// Made by guides.mjs when the site is built.
declare module 'posenc-documents' {
  export type Section = { id: string; title: string; html: string };
  export type Guide = { id: string; title: string; sections: Section[] };
  export const guides: Guide[];
  export const index: { schemes: { name: string; text: string }[]; stories: { name: string; title: string; text: string }[] };
}
