import { formulas } from 'posenc-formulas/frank';
import { type Page, guess, math, maths, section, text } from '../lesson';
import { storyOf } from '../story';

export const page: Page = {
  id: 'frank', title: 'Frank and Alex: one calculation from start to end',
  goal: 'Follow four rows through Q, K, V, scores, softmax and output; open any cell into its products.',
  render(root) {
    root.append(
      text('Frank and Alex have identical rows, but sit in different seats. Without position they stay indistinguishable through the whole layer. Press any number to open it into its products.'),
      maths(math(formulas.stages), math(formulas.output)),
      guess({
        question: 'Frank and Alex have the same row in X. After positions are added, at which stage do they first differ?',
        choices: [
          { text: 'Only after the softmax', because: 'The position is added to the rows themselves, before Q, K and V are made.' },
          { text: 'Already in X\' = X + P', right: true, because: 'P has a different row for each seat, so X\' differs at once, and everything made from it.' },
          { text: 'Never: the same person gives the same output', because: 'That is so without position. With P their rows differ.' },
        ],
      }, section('The calculation', storyOf({ name: 'frank-and-alex' }))));
  },
};
