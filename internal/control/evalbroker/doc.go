// Package evalbroker decides which evaluation is looked at next. Broker and Blocked are values: no goroutine, no
// clock, no lock; time is passed in. Shell puts both behind one mutex and wakes workers.
//
// What an evaluation leads to is the scheduler's. No goroutine is started here: workers of package leader wait in
// Shell.
package evalbroker
