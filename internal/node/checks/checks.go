package checks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/service"
)

// Check is a check of a running service, with everything resolved.
type Check struct {
	Of      string // the service's key among those of its allocation
	Service string
	Task    string // of the service, or that the check names; "" = the group's
	Group   string
	Name    string
	Type    string // http, tcp, grpc or script
	Address string // host:port; "" of script
	URL     string // of http and grpc
	Method  string
	Header  map[string][]string
	Body    string

	GRPCService string // "" = the whole server
	Command     string // of script, in the task
	Args        []string

	TLSServerName string
	TLSSkipVerify bool

	Interval time.Duration
	Timeout  time.Duration
	OnUpdate string
	Restart  *service.CheckRestart // nil = never
}

// ID is the same for the same check of an allocation, over restarts of the agent.
func (c *Check) ID() string {
	what := c.Service + "\x00" + c.Task + "\x00" + c.Name + "\x00" + c.Type + "\x00" + c.Address + "\x00" + c.URL
	for _, more := range append([]string{c.GRPCService, c.Command}, c.Args...) {
		if more != "" {
			what += "\x00" + more
		}
	}
	sum := sha256.Sum256([]byte(what))
	return hex.EncodeToString(sum[:16])
}

// Decides reports whether a rollout waits for the check.
func (c *Check) Decides() bool { return c.OnUpdate != service.OnUpdateIgnore }

// Warns reports whether a result that is not well is a warning, and not a failure.
func (c *Check) Warns(code int) bool { return c.Type == "script" && code == Warning }

// satisfies reports whether a rollout is content with the result.
func (c *Check) satisfies(s service.CheckStatus) bool {
	return !c.Decides() || s.Status == service.CheckSuccess ||
		c.OnUpdate == service.OnUpdateIgnoreWarnings && s.Status == service.CheckFailure && c.Warns(s.StatusCode)
}

// Prober carries out one check. It returns an answer's status code if there is one, what it says, and whether all is well.
type Prober interface {
	Probe(ctx context.Context, c *Check) (code int, output string, ok bool)
}

// Deps of a Set.
type Deps struct {
	Clock  clock.Clock
	Prober Prober
	// Changed is called by the checks' goroutines after each result. It must not wait for Update or Close.
	// A result that is not well may only be a warning.
	Changed func(c *Check, ok, warning bool)
}

// Set are the checks of one allocation.
type Set struct {
	deps Deps

	mu      sync.Mutex
	running map[string]*loop // guarded by mu
	wg      sync.WaitGroup
}

// loop is a check that is carried out.
type loop struct {
	check  *Check
	cancel context.CancelFunc
	status service.CheckStatus // guarded by the Set's mu
}

// New returns a Set without checks.
func New(deps Deps) *Set { return &Set{deps: deps, running: map[string]*loop{}} }

// Update makes these the checks: others end, new ones begin with a first result soon. A check that stays goes on.
func (s *Set) Update(ctx context.Context, list []*Check) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[string]*Check{}
	for _, c := range list {
		wanted[c.ID()] = c
	}
	for id, l := range s.running {
		if c := wanted[id]; c == nil || !reflect.DeepEqual(c, l.check) {
			l.cancel()
			delete(s.running, id)
		}
	}
	for id, c := range wanted {
		if s.running[id] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		l := &loop{check: c, cancel: cancel, status: service.CheckStatus{
			ID: id, Check: c.Name, Group: c.Group, Mode: "healthiness", Service: c.Service, Task: c.Task, Status: service.CheckPending,
			Output: "no check has been carried out yet",
		}}
		if !c.Decides() {
			l.status.Mode = "readiness"
		}
		s.running[id] = l
		s.wg.Go(func() { s.run(ctx, l) }) // ends with its context, which Update and Close end
	}
}

// Close ends all checks and waits for them. What they found last is forgotten.
func (s *Set) Close() {
	s.mu.Lock()
	for id, l := range s.running {
		l.cancel()
		delete(s.running, id)
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Statuses returns what each check found last, by its id.
func (s *Set) Statuses() map[string]service.CheckStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]service.CheckStatus, len(s.running))
	for id, l := range s.running {
		out[id] = l.status
	}
	return maps.Clone(out)
}

// Passed returns how many checks of each service pass or only warn, by the services' keys.
func (s *Set) Passed() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for _, l := range s.running {
		if l.status.Status == service.CheckSuccess || l.status.Status == service.CheckFailure && l.check.Warns(l.status.StatusCode) {
			out[l.check.Of]++
		}
	}
	return out
}

// Passing reports whether a rollout is content with what all checks that it waits for found last.
func (s *Set) Passing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.running {
		if !l.check.satisfies(l.status) {
			return false
		}
	}
	return true
}

// run carries out one check until its context ends.
func (s *Set) run(ctx context.Context, l *loop) {
	timer := s.deps.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
		case <-ctx.Done():
			return
		}
		probe, cancel := s.deps.Clock.WithTimeout(ctx, l.check.Timeout)
		code, output, ok := s.deps.Prober.Probe(probe, l.check)
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		l.status.StatusCode, l.status.Output, l.status.Timestamp = code, output, s.deps.Clock.Now().Unix()
		l.status.Status = service.CheckFailure
		if ok {
			l.status.Status = service.CheckSuccess
		}
		s.mu.Unlock()
		s.deps.Changed(l.check, ok, !ok && l.check.Warns(code))
		timer.Reset(l.check.Interval)
	}
}
