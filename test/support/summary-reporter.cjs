// Prints the one line that a machine reads: "N passed, N failed" (", N skipped" when there are any).
module.exports = class {
  onRunComplete(_contexts, results) {
    // A file that could not be loaded runs no test, yet it is a failure.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests;
    const line = `${results.numPassedTests} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`;
    process.stdout.write(`\n${line}\n`);
  }
};
