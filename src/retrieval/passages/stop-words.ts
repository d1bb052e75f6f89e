/**
 * English function words. In a disjunctive query they match nearly every passage, cost most of the time and
 * add almost nothing to BM25.
 */
export const stopWords: ReadonlySet<string> = new Set(
  `a about after all also am an and any are as at be because been before being between both but by can could
  did do does doing down during each few for from further had has have having he her here hers him his how i
  if in into is it its itself just me more most my no nor not of off on once only or other our ours out over
  own same she should so some such than that the their theirs them then there these they this those through
  to too under until up very was we were what when where which while who whom whose why will with would you
  your yours s t d ll re ve m`.split(/\s+/),
);
