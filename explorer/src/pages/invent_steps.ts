// The words of the path. Questions are those of content/questions by their names; where it has none, they are here.

export type Choice = { text: string; right?: boolean; because: string };
export type Asked = { prompt: string; choices: Choice[]; answer: string };
export type Step = { short: string; title: string; idea: string; failure: string; wanted: string; questions: (string | Asked)[]; more?: [page: string, words: string][] };

export const steps: Step[] = [
  {
    short: 'Count', title: 'Count the words: 0, 1, 2, 3 …',
    idea: 'Attention cannot tell where a word is, so give it the position as a number: a word is a list of numbers, its features; add p to those of the word at position p. Every position now has a code of its own.',
    failure: 'Features of a word are numbers of about 1. At position 100 the code is a hundred times as large as the word, and it grows without end: make the text longer and watch how little is left of the words. A model that was trained on 100 words has never seen a number like 500.',
    wanted: 'a code that stays small.',
    questions: ['order-equivariant', 'bad-steps', 'bad-dot-product'], more: [['order', 'attention without position']],
  },
  {
    short: '0 to 1', title: 'Divide by the length: from 0 to 1',
    idea: 'Keep the code between 0 and 1: divide the position by that of the last word. The first word has 0, the last one 1, whatever the length.',
    failure: 'Position 5 gets 0.33 in a text of 16 words and 0.02 in one of 256: change the length and watch the number at m. The length leaks into every code. The same place has another code in each text, and two neighbours differ less the longer the text is.',
    wanted: 'a code that stays small and depends on the position alone.',
    questions: [
      { prompt: 'In a text of 11 words, which code has position 5?', answer: 'Positions go from 0 to 10, so it is 5/10 = 0.5.', choices: [
        { text: '0.5', right: true, because: 'Positions go from 0 to 10: 5/10.' }, { text: '0.45', because: 'That is 5/11: the last position is 10, not 11.' }, { text: '5', because: 'That is the position before it is divided.' }] },
      { prompt: 'One word is appended to the text. Which codes change?', answer: 'All but that of the first word, which is 0 in any text.', choices: [
        { text: 'All but the first', right: true, because: 'Every code is divided by a larger number; only 0 stays 0.' }, { text: 'Only that of the last word', because: 'The divisor is the same for all positions, and it changed.' }, { text: 'None', because: 'The divisor is the length, which changed.' }] },
      'order-three-requirements',
    ],
  },
  {
    short: 'Binary', title: 'Write it in binary',
    idea: 'Use several features, each of them 0 or 1: the binary digits of the position. They are small and the same in every text, and 16 of them are enough for 65,536 positions.',
    failure: 'Digits jump. From 7 to 8 four of them change at once, from 8 to 9 only one: drag across the figure and read the line below it. Some neighbours are far apart and others close, and between 0 and 1 there is nothing from which a network could learn a slope.',
    wanted: 'digits that change smoothly: the last one fast, the first one slowly.',
    questions: [
      { prompt: 'How many binary digits change from position 15 to position 16?', answer: '15 is 01111 and 16 is 10000: all five.', choices: [
        { text: '5', right: true, because: '01111 becomes 10000.' }, { text: '1', because: 'That is so from 16 to 17.' }, { text: '4', because: 'The four ones become zeros, and a fifth digit becomes 1.' }] },
      { prompt: 'How often does the last digit change, and how often the one before it?', answer: 'The last one at every step, the one before it at every second step.', choices: [
        { text: 'At every step, and at every second step', right: true, because: 'Each digit is half as fast as the one after it.' }, { text: 'Both at every step', because: 'The digit before the last one counts the twos.' }, { text: 'At every second step, and at every fourth', because: 'The last digit tells odd from even, so it changes at every step.' }] },
      'sin-fast-and-slow',
    ],
  },
  {
    short: 'Waves', title: 'Smooth digits: waves',
    idea: 'A digit that changes smoothly is a wave. Fast waves are the last digits, slow ones the first. The code stays between −1 and 1, is the same in every text, and neighbours have similar codes.',
    failure: 'To find the word k places further on, a model must get from the code of p to that of p + k. A single sine does not tell: at 0.5, is it rising or falling? The two cases need different answers.',
    wanted: 'a code in which moving by k is the same calculation everywhere.',
    questions: ['sin-row-one', 'sin-fastest-wave', 'sin-any-length'], more: [['waves', 'waves from 16 to a million positions']],
  },
  {
    short: 'Pairs', title: 'Why pairs: a shift is a rotation',
    idea: 'Give every sine its cosine. Together they are the hand of a clock, and k positions later it has rotated by k times its frequency, wherever it was. Change m: all hands move, the angles between the two hands of a pair stay. One matrix moves every position by k, and the dot product of two codes depends only on their distance.',
    failure: 'These codes are added to words. A score is then (word + code) · (word + code): four products, and only one of them is about distance. The other three mix where a word is with what it means.',
    wanted: 'position in the score, and nowhere else.',
    questions: ['sin-shift-map', 'sin-identity', 'sin-monotone'], more: [['phasors', 'the matrix R(k)'], ['distance', 'dot products and distance']],
  },
  {
    short: 'RoPE', title: 'Rotate the query and the key: RoPE',
    idea: 'In attention each word has a query, what it looks for, and a key, what it offers; the product of a query and a key is their score. Add nothing: rotate each pair of the query by its position m, and each pair of the key by its position n. The angle between them, and with it the score, depends on m − n. Move both by the same amount: every hand rotates, and the score stays.',
    failure: 'The score is a sum of cosines, so it oscillates: a key far away can score higher than one nearby, although on average scores fall. If near is to count more than far, RoPE says it only roughly.',
    wanted: 'distance, said directly.',
    questions: ['rope-what', 'rope-turn-by-hand', 'rope-relative'], more: [['rope', 'RoPE, hand by hand']],
  },
  {
    short: 'Biases', title: 'Say it directly: a bias on the score',
    idea: 'Subtract the distance from the score, times a slope: ALiBi. Nothing is added to words and nothing is rotated. Each head has its own slope, so some look near and some look far.',
    failure: 'A straight line silences everything that is far away: in a steep head, a key 500 positions back has lost before it is compared. Trained biases such as T5\'s give all distances beyond the last bucket the same number. Most models of today rotate.',
    wanted: 'to know what becomes of a rotation in a text longer than any of training.',
    questions: ['alibi-bias-by-hand', 'alibi-what', 'order-mirror'], more: [['decay', 'schemes against distance'], ['schemes', 'all schemes']],
  },
  {
    short: 'Long texts', title: 'What long contexts break',
    idea: 'A fast pair has rotated through all angles many times in training. A slow one has not completed a turn: the shaded pairs have wavelengths above the trained length. In a longer text they reach angles that the model has never seen.',
    failure: 'Change the trained length: the fewer positions, the more pairs are shaded. Linear scaling slows every pair until the longer text fits, and makes neighbours harder to tell apart. YaRN and Llama 3 slow only the slow pairs.',
    wanted: 'today\'s long contexts are rotations, slowed where they have to be. You could have invented them.',
    questions: ['scale-why', 'scale-linear', 'rope-base'], more: [['context', 'each method, pair by pair'], ['lab', 'who extrapolates'], ['stories', 'all worked examples']],
  },
];
