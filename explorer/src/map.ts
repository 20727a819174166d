// The code of each page, loaded when the page is first opened.

import type { Page } from './lesson';

export const loaders: { [id: string]: () => Promise<{ page: Page }> } = {
  start: () => import('./pages/start'),
  invent: () => import('./pages/invent'),
  order: () => import('./pages/order'),
  waves: () => import('./pages/waves'),
  phasors: () => import('./pages/phasors'),
  distance: () => import('./pages/distance'),
  frank: () => import('./pages/frank'),
  rope: () => import('./pages/rope'),
  images: () => import('./pages/images'),
  tables: () => import('./pages/tables'),
  schemes: () => import('./pages/compare'),
  decay: () => import('./pages/decay'),
  context: () => import('./pages/context'),
  model: () => import('./pages/model'),
  exact: () => import('./pages/exact'),
  lab: () => import('./pages/lab'),
  check: () => import('./pages/check'),
  stories: () => import('./pages/stories'),
  practice: () => import('./pages/practice'),
  reference: () => import('./pages/reference'),
  guides: () => import('./pages/guides'),
  search: () => import('./pages/search'),
};
