package taskapi

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Name is that of the socket in the folder.
const Name = "api.sock"

// Bounds of each socket.
const (
	maxConns      = 64   // open at once; further ones wait in the kernel
	backlog       = 256  // that wait there; who comes then waits in connect, or is refused for the moment (EAGAIN)
	connRate      = 500  // connections a second
	requestRate   = 500  // requests a second
	requestBurst  = 1000 // and so many at once
	wrongRate     = 5    // wrong tokens a second
	wrongBurst    = 20
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// Deps of an API.
type Deps struct {
	Handler http.Handler
	// Admit says why nobody is known by the request's token, or that it has none. Errors: Unauthorized, Forbidden; others say nothing of
	// the token.
	Admit func(r *http.Request) error
	// Refused is told of each request that is answered 403 or 429 here, and why; may be nil.
	Refused func(t Task, r *http.Request, status int, why string)
	Clock   clock.Clock
	Log     *slog.Logger
}

// API opens sockets.
type API struct{ deps Deps }

// New returns an API.
func New(d Deps) *API { return &API{d} }

// Task is whose socket it is.
type Task struct {
	AllocID, Name string
	Folder        string // in which the socket is
	User          int    // who may connect; Anybody who comes to the folder
}

// Anybody stands for users that are not known on this machine, as those of an image.
const Anybody = -1

// Socket is one task's.
type Socket struct {
	api      *API
	task     Task
	listener *listener
	server   *http.Server
	cancel   context.CancelFunc // ends the requests
	requests *rate.Limiter
	wrong    *rate.Limiter
	served   chan struct{} // closed when nothing is accepted any more

	done chan struct{} // closed when it is closing, and no request is under way
	once sync.Once

	mu      sync.Mutex
	active  int  // guarded by mu: requests under way
	closing bool // guarded by mu
}

// Open makes the socket in the task's folder, in place of one that was left there; it outlives ctx. Errors: of the folder, which the task
// may have changed.
func (a *API) Open(ctx context.Context, t Task) (*Socket, error) {
	folder, err := openFolder(t.Folder)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	ln, err := listen(folder, t.User)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ended by Close
	s := &Socket{
		api: a, task: t, cancel: cancel, served: make(chan struct{}), done: make(chan struct{}),
		listener: newListener(ctx, ln, a.deps.Clock),
		requests: rate.NewLimiter(requestRate, requestBurst), wrong: rate.NewLimiter(wrongRate, wrongBurst),
	}
	s.server = &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(a.deps.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { // ends with Close
		defer close(s.served)
		_ = s.server.Serve(s.listener)
	}()
	return s, nil
}

// Close takes the socket away, cuts its connections, and ends the contexts of its requests. Idempotent; nil has nothing to close.
func (s *Socket) Close() {
	if s == nil {
		return
	}
	s.once.Do(func() {
		s.mu.Lock()
		s.closing = true
		if s.active == 0 {
			close(s.done)
		}
		s.mu.Unlock()
		s.cancel()
		_ = s.server.Close()
		s.listener.cut()                                          // also what was hijacked
		if folder, err := openFolder(s.task.Folder); err == nil { // else the socket went with it
			removeSocket(folder)
			_ = folder.Close()
		}
	})
}

// Wait returns when the closed socket has no request under way any more, or ctx ends.
func (s *Socket) Wait(ctx context.Context) {
	if s == nil {
		return
	}
	for _, c := range []<-chan struct{}{s.served, s.done} {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
}

// enter counts a request in; false when the socket is closing.
func (s *Socket) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.active++
	return true
}

// leave counts it out.
func (s *Socket) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 && s.closing {
		close(s.done)
	}
}

// ServeHTTP answers a request of the task.
func (s *Socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	defer s.leave()
	// What the log and the record of requests say of who asked. A name in Host is for browsers, which do not come here.
	r.RemoteAddr, r.Host = "task/"+s.task.AllocID+"/"+s.task.Name, "localhost"
	now := s.api.deps.Clock.Now()
	if !s.requests.AllowN(now, 1) {
		s.tooMany(w, r, fmt.Sprintf("this task sends more than %d requests a second to its socket", requestRate))
		return
	}
	if s.wrong.TokensAt(now) < 1 {
		s.tooMany(w, r, fmt.Sprintf("this task sends more than %d wrong tokens a second to its socket", wrongRate))
		return
	}
	if err := s.api.deps.Admit(r); err != nil {
		s.refuse(w, r, now, err)
		return
	}
	s.api.deps.Handler.ServeHTTP(w, r)
}

// refuse answers who is not known, in Nomad's words.
func (s *Socket) refuse(w http.ResponseWriter, r *http.Request, now time.Time, err error) {
	switch drover.CodeOf(err) {
	case drover.Unauthorized, drover.Forbidden, drover.NotFound:
		s.wrong.AllowN(now, 1)
		s.told(r, http.StatusForbidden, err.Error())
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(http.StatusText(http.StatusForbidden)))
	case drover.RateLimited:
		s.tooMany(w, r, err.Error())
	default:
		http.Error(w, "the token cannot be looked at now: "+err.Error(), http.StatusServiceUnavailable)
	}
}

// told tells of a refusal.
func (s *Socket) told(r *http.Request, status int, why string) {
	if s.api.deps.Refused != nil {
		s.api.deps.Refused(s.task, r, status, why)
	}
}

func (s *Socket) tooMany(w http.ResponseWriter, r *http.Request, why string) {
	s.told(r, http.StatusTooManyRequests, why)
	w.Header().Set("Retry-After", "1")
	http.Error(w, why, http.StatusTooManyRequests)
}

// openFolder opens the folder as a path, and no link in its place.
func openFolder(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the folder for secrets: %w", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// inside is the path of the socket by the open folder: short enough for an address, and no other folder's.
func inside(folder *os.File) string {
	return "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())) + "/" + Name
}

// removeSocket removes what has the socket's name, unless it is a folder.
func removeSocket(folder *os.File) { _ = unix.Unlinkat(int(folder.Fd()), Name, 0) }

// listen makes the socket for the user.
func listen(folder *os.File, user int) (*net.UnixListener, error) {
	removeSocket(folder)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: inside(folder)})
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", Name, err)
	}
	ln.SetUnlinkOnClose(false) // the path may be another's by then
	raw, err := ln.SyscallConn()
	if err == nil {
		var shorter error
		err = raw.Control(func(fd uintptr) { shorter = unix.Listen(int(fd), backlog) })
		if err == nil {
			err = shorter
		}
	}
	if err == nil {
		err = permit(folder, user)
	}
	if err != nil {
		_ = ln.Close()
		removeSocket(folder)
		return nil, err
	}
	return ln, nil
}

// permit lets the user connect. What the task may have put in the socket's place meanwhile gets no other owner and no other mode.
func permit(folder *os.File, user int) error {
	fd, err := unix.Openat(int(folder.Fd()), Name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", Name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at %s: %w", Name, err)
	}
	self := os.Geteuid()
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Nlink != 1 || int(st.Uid) != self {
		return drover.Errorf(drover.Conflict, "%s was replaced by the task", Name)
	}
	mode := uint32(0o600)
	switch {
	case user == Anybody || self != 0 && user != self:
		mode = 0o666 // who is not the task does not come to the folder
	case user != self:
		if err := unix.Fchownat(fd, "", user, -1, unix.AT_EMPTY_PATH); err != nil {
			return fmt.Errorf("giving %s to the task's user: %w", Name, err)
		}
	}
	if err := unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode); err != nil {
		return fmt.Errorf("letting the task's user connect to %s: %w", Name, err)
	}
	return nil
}
