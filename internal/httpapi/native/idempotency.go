package native

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/id"
)

// keyHeader names the header by which a client says that a request is a repetition. Go's net/http repeats requests that
// have either of the two.
const keyHeader, otherKeyHeader = "Idempotency-Key", "X-Idempotency-Key"

// The bounds of what is kept of requests with keys.
const (
	maxKey        = 255
	maxKeys       = 10_000           // under way and answered
	maxAnswer     = 1 << 20          // bytes of an answer that can be repeated
	maxAnswers    = 64 << 20         // bytes of all
	maxUnderWay   = 512 << 20        // bytes of the bodies of requests that are not answered yet
	keepAnswers   = 15 * time.Minute // an answer can be repeated
	abandonedTime = time.Minute      // that a request goes on without a client
)

// answers are those of requests with an idempotency key. A goroutine carries each request out, apart from its client's
// connection: it ends with the request, which is cancelled a minute after its last client left.
type answers struct {
	clock       clock.Clock
	incarnation func() uint64

	mu    sync.Mutex // guards what follows
	of    uint64     // the incarnation that gave them
	byKey map[string]*keyed
	done  []*keyed // answered, oldest first
	bytes int      // of their bodies
	open  int      // bytes of the bodies of requests under way
}

// keyed is a request with a key, and how it was answered.
type keyed struct {
	key, request string             // digests
	size         int                // of the request's body
	cancel       context.CancelFunc // of the request

	waiting   int         // clients; guarded by answers.mu
	abandoned clock.Timer // guarded by answers.mu

	ended  chan struct{} // closed when what follows is there; it does not change any more
	at     time.Time
	status int
	header http.Header
	body   []byte
	err    error
}

func newAnswers(c clock.Clock, incarnation func() uint64) *answers {
	if incarnation == nil {
		incarnation = func() uint64 { return 0 }
	}
	return &answers{clock: c, incarnation: incarnation, byKey: map[string]*keyed{}}
}

// once lets a request with an idempotency key be carried out once: repetitions by its caller are answered as the first was, or is yet
// to be. Only good answers are kept, so that a request that failed may be tried again.
func (f *Face) once(handle httpapi.Handle) httpapi.Handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		key := keyOf(r)
		if key == "" {
			return handle(w, r)
		}
		if len(key) > maxKey {
			return drover.Errorf(drover.Invalid, "%s: it has %d bytes, want at most %d", keyHeader, len(key), maxKey)
		}
		body, err := httpapi.ReadBody(r)
		if err != nil {
			return err
		}
		x, first, err := f.answers.join(keyFor(r, key), digest(r.Method, r.URL.Path, r.URL.RawQuery, string(body)), len(body))
		if err != nil {
			return err
		}
		if first {
			ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
			f.answers.begin(x, cancel)
			ctx = context.WithValue(ctx, onceKey{}, x)
			go f.carryOut(x, handle, withBody(r.WithContext(ctx), body)) // ends with the request: see answers
		}
		select {
		case <-x.ended:
		case <-r.Context().Done():
		}
		f.answers.leave(x)
		if err := context.Cause(r.Context()); err != nil {
			return err
		}
		return x.write(w, first)
	}
}

// keyOf is the request's idempotency key, "" without one.
func keyOf(r *http.Request) string {
	return cmp.Or(r.Header.Get(keyHeader), r.Header.Get(otherKeyHeader))
}

// keyFor is the digest of the key of the request's caller: two callers who use the same key know nothing of each other. It lasts, and is
// the same on all servers, as accessors are.
func keyFor(r *http.Request, key string) string {
	return digest(httpapi.CallerOf(r.Context()).Token.AccessorID, key)
}

// digest is what is kept of texts that are compared.
func digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		sum := sha256.Sum256([]byte(t))
		_, _ = h.Write(sum[:]) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func withBody(r *http.Request, body []byte) *http.Request {
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// carryOut answers the request into memory.
func (f *Face) carryOut(x *keyed, handle httpapi.Handle, r *http.Request) {
	rec := &recorder{header: http.Header{}}
	err := drover.Errorf(drover.Internal, "internal error; the server's log has the details")
	defer func() {
		if p := recover(); p != nil {
			f.Log.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
		}
		f.answers.end(x, rec, err)
	}()
	err = handle(rec, r)
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// join returns the request with the key, which the caller has to begin if it is the first; then leave it. Errors:
// Conflict if another request has the key, Exhausted.
func (a *answers) join(key, request string, size int) (x *keyed, first bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.incarnation(); now != a.of { // another server may have answered meanwhile: what the log has counts
		a.of, a.byKey, a.done, a.bytes = now, map[string]*keyed{}, nil, 0
	}
	a.expireLocked()
	x = a.byKey[key]
	switch {
	case x != nil && x.request != request:
		return nil, false, execution.ErrOtherRequest()
	case x == nil && (a.open+size > maxUnderWay || len(a.byKey) >= maxKeys && len(a.done) == 0):
		return nil, false, drover.Errorf(drover.Exhausted, "%d requests of %d bytes with an %s are under way",
			len(a.byKey)-len(a.done), a.open, keyHeader)
	case x == nil:
		if len(a.byKey) >= maxKeys {
			a.dropLocked()
		}
		first = true
		x = &keyed{key: key, request: request, size: size, ended: make(chan struct{})}
		a.byKey[key] = x
		a.open += size
	case x.abandoned != nil:
		x.abandoned.Stop()
		x.abandoned = nil
	}
	x.waiting++
	return x, first, nil
}

// begin says how the request is cancelled.
func (a *answers) begin(x *keyed, cancel context.CancelFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x.cancel = cancel
}

// leave says that a client waits no longer.
func (a *answers) leave(x *keyed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x.waiting--
	select {
	case <-x.ended:
		return
	default:
	}
	if x.waiting == 0 {
		x.abandoned = a.clock.AfterFunc(abandonedTime, x.cancel) // does nothing if the request has ended
	}
}

// end keeps the answer, if it is a good one, and gives it to those who wait.
func (a *answers) end(x *keyed, rec *recorder, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x.abandoned != nil {
		x.abandoned.Stop()
	}
	x.cancel()
	a.open -= x.size
	x.at, x.err, x.status, x.header, x.body = a.clock.Now(), err, rec.status, rec.header, rec.body.Bytes()
	close(x.ended)
	if a.byKey[x.key] != x { // of an earlier incarnation
		return
	}
	if err != nil || x.status >= http.StatusMultipleChoices {
		delete(a.byKey, x.key)
		return
	}
	kept := x
	if len(x.body) > maxAnswer {
		kept = &keyed{
			key: x.key, request: x.request, ended: x.ended, at: x.at, cancel: x.cancel,
			err: drover.Errorf(drover.Conflict, "%s: the request was carried out, and its answer is too large to be repeated: "+
				"%d bytes, more than %d", keyHeader, len(x.body), maxAnswer),
		}
		a.byKey[x.key] = kept
	}
	a.done = append(a.done, kept)
	a.bytes += len(kept.body)
	a.expireLocked()
}

// expireLocked forgets answers that are too old, and the oldest of too many bytes.
func (a *answers) expireLocked() {
	now := a.clock.Now()
	for len(a.done) > 0 && (a.bytes > maxAnswers || now.Sub(a.done[0].at) >= keepAnswers) {
		a.dropLocked()
	}
}

// dropLocked forgets the oldest answer.
func (a *answers) dropLocked() {
	x := a.done[0]
	a.done[0] = nil
	a.done = a.done[1:]
	a.bytes -= len(x.body)
	delete(a.byKey, x.key)
}

// write answers a client; the request has ended.
func (x *keyed) write(w http.ResponseWriter, first bool) error {
	if x.err != nil {
		return x.err
	}
	maps.Copy(w.Header(), x.header)
	if !first {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(x.status)
	_, _ = w.Write(x.body) // fails only when the client is gone
	return nil
}

// onceKey is the key of a request's *keyed in its context.
type onceKey struct{}

// onceOf is what tells repetitions of the request from new ones.
func onceOf(r *http.Request) execution.Once {
	x, ok := r.Context().Value(onceKey{}).(*keyed)
	if !ok {
		return execution.Once{}
	}
	return execution.Once{ID: id.Named("execution " + x.key), Key: x.key, Request: x.request}
}
