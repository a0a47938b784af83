package evaluator

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// title is a child's argv[0], and what it is called in lists of processes.
const title = "drover-evaluator"

// Func evaluates one text. It gets what the asker packed, and its result goes back as it is; of an error the code and
// the message do. It runs in a child, so it may neither open files nor keep anything.
type Func func(request []byte) ([]byte, error)

// able says that Child was called: executed again, this program would be a child, and not a second agent or a test run
// in a test run.
var able atomic.Bool // a fact about the process

// Child serves requests and ends the process if it was started as a child; else it only notes that this
// program can be. A main function, or a TestMain, calls it before everything else.
func Child(funcs map[string]Func) {
	able.Store(true)
	if os.Args[0] != title {
		return
	}
	limits, err := parseLimits(os.Args[1:])
	if err == nil {
		err = seal(limits)
	}
	if err != nil {
		_ = answer(nil, fmt.Errorf("sealing the evaluator off: %w", err), false) // else nobody listens
		os.Exit(1)
	}
	if answer(nil, nil, false) == nil {
		serve(funcs, limits)
	}
	os.Exit(0)
}

type request struct {
	name    string
	content []byte
}

// serve answers until standard input ends.
func serve(funcs map[string]Func, limits Limits) {
	requests := make(chan request)
	go func() { // ends the process when its parent went away, or does not want it any more, whatever it computes
		for {
			name, err := readPart(os.Stdin, 1<<10)
			if err != nil {
				os.Exit(0)
			}
			content, err := readPart(os.Stdin, maxRequest)
			if err != nil {
				os.Exit(0)
			}
			requests <- request{string(name), content}
		}
	}()
	before := mapped()
	for r := range requests {
		spent, err := limitTime(limits.CPU)
		if err != nil {
			_ = answer(nil, err, true)
			return
		}
		result, err := call(funcs[r.name], r)
		grown := mapped() - before
		if answer(result, err, spent || grown > limits.Memory/4) != nil {
			return
		}
		if grown > limits.Memory/16 {
			debug.FreeOSMemory()
		}
	}
}

func call(f Func, r request) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = drover.Errorf(drover.Internal, "evaluating the text: %v", p)
		}
	}()
	if f == nil {
		return nil, drover.Errorf(drover.Internal, "the evaluator has no function %q", r.name)
	}
	return f(r.content)
}

// answer writes a result or an error, and whether the child has had its time.
func answer(result []byte, err error, spent bool) error {
	kind := byte(answerResult)
	if err != nil {
		kind = answerError
		result = append([]byte{byte(drover.CodeOf(err))}, err.Error()...)
	}
	if spent {
		kind += answerSpent
	}
	return writeFrame(os.Stdout, []byte{kind}, result)
}

// lifeTime is the processor time after which a child is replaced, and then that at which the kernel ends it.
const lifeTime, lastTime = 60, 120 // s

// limitTime lets the process compute for so long from now on, in whole seconds: the kernel ends it then.
// spent says that it should be replaced after this.
func limitTime(d time.Duration) (spent bool, err error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return false, fmt.Errorf("asking for the time that was used: %w", err)
	}
	sofar := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	soft := min((sofar+d+time.Second-1)/time.Second, lastTime)
	if err := lower(unix.RLIMIT_CPU, uint64(soft), lastTime); err != nil { // positive
		return false, fmt.Errorf("limiting the processor time: %w", err)
	}
	return sofar > lifeTime*time.Second, nil
}

// mapped is how much memory the runtime has ever taken: it gives pages back, but never addresses, and those are limited.
func mapped() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()) // far below
}

func parseLimits(args []string) (l Limits, err error) {
	if len(args) != 1 {
		return l, errors.New("wrong arguments")
	}
	_, err = fmt.Sscanf(args[0], "memory=%d,cpu=%d", &l.Memory, &l.CPU)
	return l, err
}

func (l Limits) argument() string { return fmt.Sprintf("memory=%d,cpu=%d", l.Memory, l.CPU) }
