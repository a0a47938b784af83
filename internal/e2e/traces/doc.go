// Package traces replays transcripts of Nomad against the real binary: 131 histories of jobs, each with what Nomad had at
// the end of every step (testdata). It has tests only.
//
// Beside them stand walks (testdata/walks): job files of each kind, and commands of Nomad's command line, performed by the requests
// which that makes. They end as a step of a recording does, or as what Nomad documents says.
//
//	make traces                    all of them, some ten minutes
//	make traces RUN='^canary-'     some
//	make traces RUN=pause DETAILS=1   tells the order of events, the triggers of evaluations and the descriptions too
//	make traces RUN=pause STRICT=1    compares them, less what details_test.go leaves out, with the reasons
//
// A history is a list of steps. A step sends the requests that were recorded, with identifiers of this run in place of JOB,
// DEPLOYMENT-1, ALLOCATION(v0 g[0]) and NODE-0. It has succeeded when what the API tells about the job equals what it told in
// Nomad, and has not changed for as long as the recording waited. It has failed when that did not happen within the time which
// Nomad took and ten seconds (more on a machine with other work, by measure). It has also failed when a state that was reached
// is left again, or when at any moment fewer allocations ran than Nomad kept running.
//
// What differs while the machine was elsewhere for half of the time is sent again by itself, after all others and three times at most. The
// measure is of this process's own thread. So a difference that only a crowd shows, and not each time, passes: -v tells it.
//
// Where this project differs on purpose, exceptions_test.go names the history, the step and both lines, with the reason;
// an exception that does not occur fails its history. Its races are histories in which the recording did something after
// so many seconds, in the midst of a rollout, and which may go on in more than one way. Histories that are known to fail
// and have to be mended are in pending_test.go. What a walk's file may say is told at the type walk.
//
// A test owns the goroutines: one for each history, one that follows its events, and one that measures how busy the machine is.
package traces
