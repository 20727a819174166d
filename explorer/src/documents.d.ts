// Made by guides.mjs when the site is built.
declare module 'posenc-guides' {
  export type Section = { id: string; title: string; html: string };
  export const guides: { id: string; title: string; load(): Promise<{ sections: Section[] }> }[];
}
declare module 'posenc-search-index' {
  export const index: { schemes: { name: string; text: string }[]; pages: { [id: string]: string } };
}
// The worked examples: content/stories, in the order of content/topics.json. `python` is the calculation in numpy, `figure` the words after posenc that draw it.
declare module 'posenc-stories' {
  export const stories: { name: string; title: string; text: string; python: string; figure?: string }[];
}
// What the library answered when the site was built: each worked example with its own words, a module for each.
declare module 'posenc-story-answers' {
  export const answers: { [name: string]: () => Promise<{ story: any }> };
}
// Made by formulas.mjs from formulas.json: MathML, one module for each page.
declare module 'posenc-formulas/*' {
  export const formulas: { [name: string]: string };
}
// Made from content/guesses.json.
declare module 'posenc-guesses/*' {
  export const question: import('./lesson').Guess;
}
declare module 'posenc-scheme-pages' {
  export type SchemePage = { idea: string; papers: { authors: string; year: number; title: string; url: string }[]; pitfalls: string[]; type: string };
  export const schemePages: { [name: string]: SchemePage };
}
// The questions of content/questions that the path asks, with their numbers computed.
declare module 'posenc-invented' {
  export const questions: { id: string; prompt: string; choices: { text: string; right?: boolean; because: string }[]; answer: string }[];
}
// What the library answered when the site was built: every scheme and scaling, which properties it measures, and the first exercise.
declare module 'posenc-scheme-list' {
  export const list: { schemes: any[]; scalings: any[] };
  export const properties: { property: string; heading: string; statement: string }[];
}
declare module 'posenc-first-exercise' {
  export const exercise: any;
}
// The models of the lab, from the heads of explorer/models. Losses are in nats a character.
declare module 'posenc-lab-models' {
  export type LabModel = { scheme: string; layers: number; heads: number; width: number; vocabulary: number; context: number; parameters: number; bytes: number; scores: { size: number; nll: number }[]; longest: { size: number; tokens: number; nll_by_position: number[] } };
  export const models: LabModel[];
}
