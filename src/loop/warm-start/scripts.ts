// The teacher's scripts: what it writes turn by turn, given what its searches showed. A script that cannot go on
// gives up, and the next one is tried.

import { isYesNo, type Question } from '../../evaluation/index.js';
import { kindOf, type Mention, mentionsOf, nameQuery, openWords } from './question-plan.js';
import {
  coreTitle,
  findSupports,
  oneLine,
  passageOf,
  quoteAround,
  quoteUpTo,
  type SeenPassage,
  type Support,
  sameTitle,
} from './support.js';
import { contentStems, findPhrase, namesOf, overlap, sentencesOf } from './words.js';

/** Yields turns, gets back what the search of each showed. Ends after the turn with the answer. */
export type Script = Generator<string, void, readonly SeenPassage[]>;

export interface NamedScript {
  readonly kind: 'single' | 'retry' | 'chain' | 'comparison' | 'parallel';
  readonly run: () => Script;
}

/** Why a script could not go on. */
export class GiveUp extends Error {}

export interface ScriptSettings {
  /** Most searches of a script. */
  readonly searches: number;
  /** Texts of the supporting pages, by title, as far as the index has them: what the teacher knows beforehand. */
  readonly pages: ReadonlyMap<string, readonly string[]>;
}

/** The scripts to try for a question, the best first. */
export function scriptsFor(question: Question, settings: ScriptSettings): NamedScript[] {
  const single: NamedScript[] = [
    { kind: 'single', run: () => singleSearch(question) },
    { kind: 'retry', run: () => searchAgain(question) },
  ];
  const kind = kindOf(question);
  if (kind === 'comparison')
    return [question.question, null].map((query) => ({ kind, run: () => comparison(question, query) }));
  if (kind === 'parallel') return settings.searches < 3 ? [] : [{ kind, run: () => parallel(question) }];
  if (isYesNo(question.goldenAnswers)) return [];
  if (kind === 'single') return single;
  const first = [question.question, nameQuery(question)].filter((query) => query !== '');
  return [
    ...first.map((query): NamedScript => ({ kind, run: () => chain(question, query, settings) })),
    ...single.slice(0, 1),
  ];
}

const search = (thought: string, query: string): string =>
  `<think>${thought}</think>\n<search>${queryText(query)}</search>`;
const answer = (thought: string, text: string): string =>
  `<think>${thought}</think>\n<answer>${oneLine(text)}</answer>`;

/** A query without a question mark, on one line. */
const queryText = (query: string): string => oneLine(query).replace(/[?\s.,]+$/, '');

/** A quote that was cut loses the marks at its end, and every quote ends as a sentence. */
const says = (passage: SeenPassage, quoted: string): string => {
  const quote = quoted.replace(/[\s,;:(–—-]+$/, '');
  return `Doc ${passage.index} says: ${/[.!?]["”']?$/.test(quote) ? quote : `${quote}.`}`;
};

/**
 * Every script begins alike. A small model does not tell from a question alone how many searches it takes, and one that
 * has said a number holds on to it; once it has read and quoted, the next word is easier to choose.
 */
const FIRST = 'First what the question asks.';

/** Fewest words that question and place of the answer must share, where nobody told the page. */
const FEWEST_SHARED = 2;

/** The best place of a gold answer that also speaks of what is asked. */
function supportOf(question: Question, seen: readonly SeenPassage[]): Support | null {
  const supports = findSupports(seen, question.question, question.goldenAnswers);
  const { supportingTitles } = question;
  const told = supports.find(({ passage }) =>
    supportingTitles.some((title) => sameTitle(title, passage.title)),
  );
  if (told !== undefined) return told;
  const asked = contentStems(question.question).size;
  return supports.find(({ score }) => score >= Math.min(FEWEST_SHARED, asked)) ?? null;
}

function refuseNamedAnswer(question: Question): void {
  if (question.goldenAnswers.some((gold) => findPhrase(question.question, gold).length > 0))
    throw new GiveUp('the question names its answer');
}

function* singleSearch(question: Question): Script {
  refuseNamedAnswer(question);
  const seen = yield search(FIRST, question.question);
  const support = supportOf(question, seen);
  if (support === null) throw new GiveUp('the answer is not in what the question finds');
  yield answer(says(support.passage, support.quote), support.answer);
}

function* searchAgain(question: Question): Script {
  refuseNamedAnswer(question);
  const query = nameQuery(question);
  if (query === '') throw new GiveUp('the question names nothing to search for');
  const first = yield search(FIRST, question.question);
  if (supportOf(question, first) !== null) throw new GiveUp('the first search finds it');
  const seen = yield search('The passages do not tell. I need to search with other words.', query);
  const support = supportOf(question, seen);
  if (support === null) throw new GiveUp('the answer is not in what the names find');
  yield answer(says(support.passage, support.quote), support.answer);
}

/** A page that leads on to another: where the other one is named. */
interface Link {
  readonly passage: SeenPassage;
  readonly quote: string;
  /** The page's name as the passage writes it. */
  readonly name: string;
  readonly title: string;
}

/** Follows the supporting pages: what one passage names is searched for next. */
function* chain(question: Question, firstQuery: string, { searches, pages }: ScriptSettings): Script {
  refuseNamedAnswer(question);
  const titles = question.supportingTitles;
  const linked = new Set<string>();
  let turn = search(FIRST, firstQuery);
  for (let count = 1; ; count++) {
    const seen = yield turn;
    const onPages = seen.filter((passage) => titles.some((title) => sameTitle(title, passage.title)));
    if (onPages.length === 0) throw new GiveUp('no supporting page was found');
    const support = count > 1 ? supportOf(question, onPages) : null;
    if (support !== null) {
      yield answer(says(support.passage, support.quote), support.answer);
      return;
    }
    if (count === searches) throw new GiveUp('too many steps');
    const link = linkOf(question, onPages, linked) ?? sharedName(question, onPages, linked, pages);
    if (link === null) throw new GiveUp('no passage names another page');
    linked.add(link.title);
    const open = openWords(question.question, `${link.passage.title} ${link.quote} ${link.name}`);
    turn = search(`${says(link.passage, link.quote)} So I need ${link.name}.`, `${link.name} ${open}`);
  }
}

/** The best sentence of what was seen that names a supporting page which the question does not name. */
function linkOf(question: Question, seen: readonly SeenPassage[], linked: ReadonlySet<string>): Link | null {
  const asked = contentStems(question.question);
  const links: (Link & { readonly score: number })[] = [];
  for (const title of question.supportingTitles) {
    const name = coreTitle(title);
    if (linked.has(title) || isAnswer(question, name) || findPhrase(question.question, name).length > 0)
      continue;
    for (const passage of seen) {
      if (sameTitle(passage.title, title)) continue;
      for (const [start, end] of sentencesOf(passage.text)) {
        const sentence = passage.text.slice(start, end);
        const place = findPhrase(sentence, name)[0];
        if (place === undefined) continue;
        const score = overlap(asked, contentStems(`${passage.title} ${sentence}`));
        links.push({
          passage,
          title,
          name: sentence.slice(...place),
          quote: quoteUpTo(sentence, place),
          score,
        });
      }
    }
  }
  return links.sort((a, b) => b.score - a.score)[0] ?? null;
}

const SHORTEST_NAME = 4;
/** American, Polish, Chinese: shared by pages that have nothing to do with each other. */
const ORIGIN = /^\S+(?:an|ish|ese|ic)$/;

/** The answer itself is no step on the way to it. */
const isAnswer = (question: Question, name: string): boolean =>
  question.goldenAnswers.some(
    (gold) => findPhrase(gold, name).length > 0 || findPhrase(name, gold).length > 0,
  );

/** A name, not in the question, that stands in what was seen and on a supporting page that was not seen yet. */
function sharedName(
  question: Question,
  seen: readonly SeenPassage[],
  linked: ReadonlySet<string>,
  pages: ScriptSettings['pages'],
): Link | null {
  const asked = contentStems(question.question);
  const links: (Link & { readonly score: number })[] = [];
  for (const [title, texts] of pages) {
    if (linked.has(title) || seen.some((passage) => sameTitle(passage.title, title))) continue;
    const page = [title, ...texts].join(' ');
    for (const passage of seen)
      for (const [start, end] of sentencesOf(passage.text)) {
        const sentence = passage.text.slice(start, end);
        const name = namesOf(sentence).find(
          (item) =>
            item.length >= SHORTEST_NAME &&
            !ORIGIN.test(item) &&
            !isAnswer(question, item) &&
            overlap(contentStems(item), asked) === 0 &&
            contentStems(item).size > 0 &&
            findPhrase(page, item).length > 0,
        );
        const place = name === undefined ? undefined : findPhrase(sentence, name)[0];
        if (name === undefined || place === undefined) continue;
        const score = overlap(asked, contentStems(`${passage.title} ${sentence}`));
        links.push({ passage, title, name, quote: quoteUpTo(sentence, place), score });
      }
  }
  return links.sort((a, b) => b.score - a.score || b.name.length - a.name.length)[0] ?? null;
}

/**
 * The first query shows one of the two pages, the other one is searched for by its name.
 * @param firstQuery null: the name of the first page
 */
function* comparison(question: Question, firstQuery: string | null): Script {
  const mentions = mentionsOf(question) as [Mention, Mention];
  const decided = comparedAnswer(question, mentions);
  const begun = yield search(FIRST, firstQuery ?? mentions[0].text);
  const order = passageOf(begun, mentions[0].title) === undefined ? mentions.toReversed() : mentions;
  const [first, second] = order as [Mention, Mention];
  const fact = factOf(question, first.title, begun);
  const seen = yield search(`${fact} Now I need ${oneLine(second.text)}.`, second.text);
  const facts = [fact, factOf(question, second.title, seen)];
  const years = yearsTold(question, [first.text, second.text], facts, decided, [first, second]);
  yield answer(`${facts[1]}${years}`, decided);
}

/** One search shows both named pages; the pages that they lead to are searched for one by one and compared. */
function* parallel(question: Question): Script {
  const named = mentionsOf(question) as [Mention, Mention];
  const decided = comparedAnswer(question, named);
  const seen = yield search(FIRST, question.question);
  const links = named.map(({ title }) => {
    const passage = passageOf(seen, title);
    const link = passage === undefined ? null : linkOf(question, [passage], new Set());
    if (link === null) throw new GiveUp('a named page or what it leads to was not found');
    return link;
  }) as [Link, Link];
  const [first, second] = links;
  if (first.title === second.title) throw new GiveUp('both pages lead to one');
  const quotes = links.map(({ passage, quote }) => says(passage, quote)).join(' ');
  const facts: string[] = [];
  for (const [i, link] of links.entries()) {
    const thought =
      i === 0
        ? `${quotes} So I need ${first.name} and ${second.name}.`
        : `${facts.at(-1)} Now I need ${second.name}.`;
    const shown = yield search(thought, link.name);
    facts.push(factOf(question, link.title, shown));
  }
  const years = yearsTold(question, [first.name, second.name], facts, decided, named);
  yield answer(`${facts.at(-1)}${years}`, decided);
}

const ABOUT_TIME =
  /\b(?:first|earlier|earliest|later|older|oldest|younger|youngest|longer|born|died|dies|die|released|founded|started|before|after|recent|recently|came|come|lived)\b/i;

/** The sentence of a page that the comparison is about: with a year where time is asked for, else the nearest. */
function factOf(question: Question, title: string, seen: readonly SeenPassage[]): string {
  const passage = passageOf(seen, title);
  if (passage === undefined) throw new GiveUp('a compared page was not found');
  const sentences = sentencesOf(passage.text).map(([start, end]) => passage.text.slice(start, end));
  const asked = contentStems(question.question);
  const own = contentStems(passage.title);
  const value = (sentence: string): number => {
    const year = ABOUT_TIME.test(question.question) && /\d{4}/.test(sentence) ? 2 : 0;
    const stems = new Set([...contentStems(sentence)].filter((item) => !own.has(item)));
    return year + overlap(asked, stems);
  };
  const best = sentences.reduce((a, b) => (value(b) > value(a) ? b : a), sentences[0] ?? '');
  return says(passage, quoteAround(best, [0, Math.min(best.length, 60)]));
}

function comparedAnswer(question: Question, mentions: readonly Mention[]): string {
  const golds = question.goldenAnswers;
  const named = mentions.find(({ title, text }) =>
    golds.some((gold) => sameTitle(gold, title) || gold.toLowerCase() === text.toLowerCase()),
  );
  if (named !== undefined || isYesNo(question.goldenAnswers)) return golds[0] as string;
  throw new GiveUp('the answer is none of the compared pages');
}

const EARLIER = /\b(?:first|earlier|earliest|older|oldest|before)\b/i;
const LATER = /\b(?:later|younger|youngest|after|recent|recently|last)\b/i;

/**
 * The two years that decide a comparison in time, said in words; '' where it is none, or where the years that a
 * rule takes from the facts do not lead to the gold answer.
 */
function yearsTold(
  question: Question,
  names: readonly [string, string],
  facts: readonly string[],
  decided: string,
  mentions: readonly Mention[] = mentionsOf(question),
): string {
  const text = question.question;
  const earlier = EARLIER.test(text);
  if (earlier === LATER.test(text)) return '';
  const [a, b] = facts.map((fact) => yearOf(fact, /\b(?:died|dies|die|death)\b/i.test(text)));
  if (a === undefined || b === undefined || a === b) return '';
  const winner = a < b === earlier ? 0 : 1;
  const mention = mentions[winner];
  if (mention === undefined || !(sameTitle(decided, mention.title) || sameTitle(decided, mention.text)))
    return '';
  return ` ${names[0]}: ${a}. ${names[1]}: ${b}.`;
}

/** The first year of a text, or the last one of its first bracket where a death is asked for. */
function yearOf(fact: string, death: boolean): number | undefined {
  const years = (death ? (/\(([^)]*)\)/.exec(fact)?.[1] ?? '') : fact).match(/\b[12]\d{3}\b/g) ?? [];
  if (death && years.length < 2) return undefined;
  const year = death ? years.at(-1) : years[0];
  return year === undefined ? undefined : Number(year);
}
