package executor

import (
	"context"
	"io"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Reader is one attachment to an execution. It is a execution.Session.
type Reader struct {
	*Execution
	from    execution.Offsets // of the next bytes; guarded by Execution.mu
	started bool
	ended   bool
	resumes bool  // its stdin goes on where that of earlier attachments ended
	stdinAt int64 // of its next byte, where it resumes and has started
	once    sync.Once
}

var _ execution.Session = (*Reader)(nil)

// Attach reads from the offsets on, now and as the program writes. Close it.
func (x *Execution) Attach(from execution.Offsets) *Reader {
	r := &Reader{Execution: x, from: atLeastZero(from)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.readers[r] = struct{}{}
	x.attachedLocked()
	return r
}

func atLeastZero(from execution.Offsets) execution.Offsets {
	return execution.Offsets{Stdout: max(from.Stdout, 0), Stderr: max(from.Stderr, 0)}
}

// Next serves execution.Session. The receipt is the last frame, then comes io.EOF; a runner that went away is told in
// the receipt too (CauseRunnerGone). Errors: ctx's; Unavailable when this server does not keep it any more.
func (r *Reader) Next(ctx context.Context) (execution.Frame, error) {
	for {
		r.mu.Lock()
		f, ok, err := r.nextLocked()
		if ok || err != nil {
			r.mu.Unlock()
			return f, err
		}
		changed := r.changedLocked()
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return execution.Frame{}, context.Cause(ctx)
		}
	}
}

// Pending reports whether Next has something at once.
func (r *Reader) Pending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pid != 0 && !r.started || r.journal.Of(execution.Stdout).End() > r.from.Stdout ||
		r.journal.Of(execution.Stderr).End() > r.from.Stderr ||
		r.receipt != nil && !r.ended
}

// nextLocked returns the next frame; ok is false if there is none yet. The order is fixed: the start, all output,
// the receipt, then io.EOF for ever.
func (r *Reader) nextLocked() (f execution.Frame, ok bool, err error) {
	if r.pid != 0 && !r.started {
		return r.startLocked()
	}
	if f, ok = r.dataLocked(); ok {
		return f, true, nil
	}
	if r.receipt == nil {
		return f, false, r.left
	}
	if r.ended {
		return f, false, io.EOF
	}
	r.ended = true
	return execution.Frame{Receipt: r.receipt}, true, nil
}

// startLocked returns the first frame. Where stdin goes on is said if it is known now; while that is found out there is none.
func (r *Reader) startLocked() (f execution.Frame, ok bool, err error) {
	f = execution.Frame{Started: true, Pid: r.pid}
	if r.resumes && r.spec.Stdin && r.receipt == nil && r.left == nil {
		at, known, soon := r.stdin.position()
		if soon {
			return execution.Frame{}, false, nil
		}
		if known {
			f.Stdin, r.stdinAt = &at, at
		}
	}
	r.started = true
	return f, true, nil
}

// Resume has this attachment's stdin go on where that of earlier ones ended, as its first frame says: what it sends twice counts
// once. It is called before the first Next.
func (r *Reader) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resumes, r.stdinAt = true, -1
}

// Write is that of the Execution; where the attachment resumes, at its own offset. Errors: Conflict if bytes before it were lost, or
// it is not known: attach again.
func (r *Reader) Write(ctx context.Context, p []byte) error {
	r.mu.Lock()
	resumes, at := r.resumes, r.stdinAt
	r.mu.Unlock()
	if !resumes {
		return r.Execution.Write(ctx, p)
	}
	if at < 0 {
		return drover.Errorf(drover.Conflict, "where stdin of execution %s goes on is not known: await the first message", r.id)
	}
	at, err := r.write(ctx, at, p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.stdinAt = at
	}
	return err
}

// CloseStdin is that of the Execution; where the attachment resumes, behind what it has sent. Errors: as Write.
func (r *Reader) CloseStdin(ctx context.Context) error {
	r.mu.Lock()
	at := int64(anywhere)
	if r.resumes && r.stdinAt >= 0 {
		at = r.stdinAt
	}
	r.mu.Unlock()
	return r.closeStdin(ctx, at)
}

// Given is how much of stdin the command was given, for an attachment that resumes.
func (r *Reader) Given() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stdinAt
}

// dataLocked returns the bytes that arrived first of those not yet read. That bytes are missing which nothing follows is
// told without data.
func (r *Reader) dataLocked() (f execution.Frame, ok bool) {
	out, outSeq := r.peekLocked(execution.Stdout, r.from.Stdout)
	err, errSeq := r.peekLocked(execution.Stderr, r.from.Stderr)
	switch {
	case out.Skipped && out.Data == nil, out.Data != nil && (err.Data == nil || outSeq < errSeq):
		f = out
		r.from.Stdout = f.Offset + int64(len(f.Data))
	case err.Skipped, err.Data != nil:
		f = err
		r.from.Stderr = f.Offset + int64(len(f.Data))
	default:
		return f, false
	}
	if r.blocked {
		r.wakeLocked()
	}
	return f, true
}

// peekLocked returns the stream's next bytes without moving on. Skipped is set if bytes from the reader's offset on
// were dropped; the frame then begins at the first that is kept. Data shares the journal's memory, which is only
// appended to.
func (r *Reader) peekLocked(s execution.Stream, from int64) (f execution.Frame, seq uint64) {
	l := r.journal.Of(s)
	f = execution.Frame{Stream: s, Offset: max(from, l.Start()), Skipped: from < l.Start()}
	seq, f.Data = l.At(f.Offset)
	return f, seq
}

// Close detaches. When it was the last, the execution's Detach decides what becomes of it.
func (r *Reader) Close() error {
	r.once.Do(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, attached := r.readers[r]; !attached {
			return
		}
		delete(r.readers, r)
		r.wakeLocked()
		r.detachedLocked()
	})
	return nil
}
