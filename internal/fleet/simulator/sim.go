package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
	"github.com/drover-project/drover/internal/fleet/scaler"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/invariant"
)

// Config is one run.
type Config struct {
	Seed     uint64
	Start    time.Time // of virtual time; default 2026-01-05 00:00 UTC, a Monday
	Policy   *fleet.Policy
	Cloud    sim.Config // its offerings and owner are filled in
	Work     Workload
	Decide   func(scaler.Input) scaler.Output // nil = ours
	Coalesce time.Duration                    // between decisions while nothing waits; default 1 s
	Burst    time.Duration                    // from the arrival of work to the decision; default 50 ms
	Halves   float64                          // times an hour that an agent stays but starts and ends no work any more
	Ghosts   float64                          // share of machines from which a second agent calls with the same token
	Flaps    float64                          // times an hour that an agent falls silent for about a minute
	Restarts []time.Duration                  // when the server is killed and started again
	Linger   time.Duration                    // for how long after the last task machines may still exist; default 2 h
	Check    int                              // full invariants every so many events; default 1000
	Sample   time.Duration                    // between points of Result.Points, at first; 0 = none
	Stopped  func() error                     // asked now and then: an error ends the run with it; nil = none
}

// start is when virtual time begins, if nothing else is said: a Monday.
var start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// Sim is a run under way.
type Sim struct {
	cfg Config
	// now is virtual time, in nanoseconds since Config.Start; so is every other time that is an int64.
	now       int64
	events    events
	core      *pool.Core
	epoch     int // of the core: answers to an older one are lost
	cloud     *sim.Cloud
	rng       *rand.Rand
	ids       id.Source
	intents   map[string]fleet.Durable // what the raft log has
	nodes     map[string]*node         // by intent
	byCloud   map[string]*node
	free      buckets
	tasks     []task
	waiting   []queue
	waits     int // tasks that wait
	done      int
	doneAt    int64
	last      int64 // when the last task would end if none waited
	running   int
	wakeAt    int64 // of the decision that is planned; -1 = none
	wakeMe    int64 // of the cloud's next happening; -1 = none
	hash      hash.Hash
	result    Result
	restarted int64          // when the server was
	missed    int            // machines that have not called home since
	stopped   map[string]int // tasks that wait because of a limit, by it, as the last decision said
	integral
	thrash
}

// Run simulates until all work is done and all machines are gone. Errors: Invalid for work that can never run; a breach of
// an invariant, with the seed.
func Run(cfg Config) (res Result, err error) {
	// Work that can never run would wait for ever, and the simulation with it: so it is refused before it begins.
	if err := refuse(&cfg); err != nil {
		return res, err
	}
	s := newSim(cfg)
	// The product's own checks count breaches for the whole process. Runs side by side may therefore blame each other,
	// but none is missed.
	breaches := invariant.Breaches()
	defer func() {
		switch r := recover().(type) {
		case nil:
			if n := invariant.Breaches() - breaches; n > 0 && err == nil {
				err = fmt.Errorf("seed %d: %d invariants were breached, see the log", cfg.Seed, n)
			}
		// Everything below Run panics with a breach, so that checks deep inside callbacks need no error paths.
		case breach:
			res, err = s.finish(), fmt.Errorf("seed %d at %s: %s", cfg.Seed, time.Duration(s.now), string(r))
		case string:
			res, err = s.finish(), fmt.Errorf("seed %d at %s: %s", cfg.Seed, time.Duration(s.now), r)
		default:
			panic(r)
		}
	}()
	s.start()
	for n := 1; len(s.events.list) > 0 && !s.over(); n++ {
		e := s.events.pop()
		s.advance(e.at)
		if e.do != nil {
			e.do()
		} else {
			s.taskEnds(e.task, e.run)
		}
		if n%s.cfg.Check == 0 {
			s.check()
		}
		s.result.Events++
		if cfg.Stopped != nil && n%256 == 0 {
			if err := cfg.Stopped(); err != nil {
				return s.finish(), err
			}
		}
	}
	if err := s.overdue(); err != nil {
		return s.finish(), err
	}
	s.checkEnd()
	return s.finish(), nil
}

// overdue says what kept work from being done for days after the last of it came, if it is a limit of the policy.
func (s *Sim) overdue() error {
	if s.done == len(s.tasks) || len(s.stopped) == 0 {
		return nil
	}
	return drover.Errorf(drover.Invalid, "three days after the last task could have ended %d of %d are done: %s is in the way", s.done,
		len(s.tasks), strings.Join(sortedKeys(s.stopped), ", "))
}

// newSim fills in the defaults and returns a simulation at time zero. The policy is copied, as the end of the run
// changes it.
func newSim(cfg Config) *Sim {
	if cfg.Start.IsZero() {
		cfg.Start = start
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.Coalesce, time.Second)
	def(&cfg.Burst, 50*time.Millisecond)
	def(&cfg.Linger, 2*time.Hour)
	policy := *cfg.Policy
	cfg.Policy = &policy
	if cfg.Check == 0 {
		cfg.Check = 1000
	}
	cfg.Cloud.Seed, cfg.Cloud.Owner, cfg.Cloud.Offerings = cfg.Seed, "sim", cfg.Policy.Offerings()
	s := &Sim{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 5)), ids: id.NewSeeded(cfg.Seed), intents: map[string]fleet.Durable{},
		nodes: map[string]*node{}, byCloud: map[string]*node{}, wakeAt: -1, wakeMe: -1, hash: sha256.New(),
		cloud: sim.NewCloud(cfg.Cloud), tasks: make([]task, len(cfg.Work)),
	}
	s.thrash.gone = map[string][]int64{}
	s.result.Why, s.result.Stopped = Reasons{}, map[string]time.Duration{}
	return s
}

// refuse names the first task that no machine of the policy could ever run. Errors: Invalid.
func refuse(cfg *Config) error {
	offerings := cfg.Policy.Offerings()
	type size struct{ cpu, memory int64 }
	known := map[size]error{}
	for i := range cfg.Work {
		t := &cfg.Work[i]
		k := size{t.Each.CPU, t.Each.MemoryMB}
		err, seen := known[k]
		if !seen {
			err = fitsNone(cfg.Policy, offerings, t.Each)
			known[k] = err
		}
		if err != nil {
			return drover.Errorf(drover.Invalid, "%s, with %d MHz and %d MB of memory, can never run: %w", t, t.Each.CPU, t.Each.MemoryMB, err)
		}
	}
	return nil
}

// fitsNone says why work of a size has no place on any machine that may be bought; nil if it has.
func fitsNone(p *fleet.Policy, offerings []fleet.Offering, each drover.Capacity) error {
	if len(offerings) == 0 {
		return drover.Errorf(drover.Invalid, "the pool may buy nothing: its types cost more than max_price, or none is sold on its market")
	}
	biggest, fits := 0, false
	for i := range offerings {
		o := &offerings[i]
		if o.Capacity.CPU*max(o.Capacity.MemoryMB, 1) > offerings[biggest].Capacity.CPU*max(offerings[biggest].Capacity.MemoryMB, 1) {
			biggest = i
		}
		if ok, _ := each.Fits(o.Capacity); !ok {
			continue
		}
		fits = true
		within := (p.Limits.CPU == 0 || o.Capacity.CPU <= p.Limits.CPU) && (p.Limits.MemoryMB == 0 || o.Capacity.MemoryMB <= p.Limits.MemoryMB)
		strict := p.Budget.AtLimit == fleet.BudgetQueue || p.Budget.AtLimit == ""
		if within && (!strict || (p.Budget.PerHour == 0 || o.Price <= p.Budget.PerHour) && (p.Budget.PerDay == 0 || o.Price <= p.Budget.PerDay)) {
			return nil
		}
	}
	if fits {
		return drover.Errorf(drover.Invalid, "the pool's limits and budget allow no machine of a type that it fits on")
	}
	o := &offerings[biggest]
	return drover.Errorf(drover.Invalid, "it fits no type; the biggest, %s, has %d MHz and %d MB", o.Type, o.Capacity.CPU, o.Capacity.MemoryMB)
}

// start plans what is known from the beginning: the arrival of work, restarts of the server, the first decision, and
// samples.
func (s *Sim) start() {
	s.newCore()
	for i := range s.cfg.Work {
		s.tasks[i] = task{Task: &s.cfg.Work[i], class: -1}
		s.last = max(s.last, int64(s.cfg.Work[i].At+s.cfg.Work[i].Run))
	}
	s.arrivals(0)
	for _, at := range s.cfg.Restarts {
		s.at(int64(at), s.restart)
	}
	s.decideIn(0)
	if s.cfg.Sample > 0 {
		s.at(0, s.sample)
	}
}

// mostPoints bounds Result.Points. It is even, so that the newest point stays when each other goes.
const mostPoints = 1024

// sample notes how things stand.
func (s *Sim) sample() {
	machines, perHour := s.cloud.Running()
	s.result.Points = append(s.result.Points, fleet.SimulatedPoint{
		At: time.Duration(s.now), Machines: machines, Running: s.running, Waiting: s.waits, PerHour: perHour,
	})
	if all := s.result.Points; len(all) > mostPoints { // it lasts longer than its arrivals let expect: each other point will do
		s.result.Points, s.cfg.Sample = all[:0], 2*s.cfg.Sample
		for i := 0; i < len(all); i += 2 {
			s.result.Points = append(s.result.Points, all[i])
		}
	}
	s.in(s.cfg.Sample, s.sample)
}

// newCore starts a core that knows nothing, as a restarted server has. The new epoch makes answers to the old core go
// nowhere.
func (s *Sim) newCore() {
	s.epoch++
	s.core = pool.NewCore(s.time(), pool.Config{
		Shareable: func(*fleet.Policy) bool { return true },
		Owner:     "sim", Provider: s.cfg.Policy.Provider, Policies: []*fleet.Policy{s.cfg.Policy}, Caps: s.cfg.Cloud.Caps,
		Seed: s.cfg.Seed, IDs: s.ids, Audit: s.audit, Decide: s.cfg.Decide,
	})
}

// arrivals lets all tasks of one moment arrive, then plans the next moment.
func (s *Sim) arrivals(next int) {
	if next >= len(s.tasks) {
		return
	}
	s.at(int64(s.tasks[next].At), func() {
		i := next
		for ; i < len(s.tasks) && int64(s.tasks[i].At) <= s.now; i++ {
			s.arrive(int32(i))
		}
		s.arrivals(i)
	})
}

// time is the present as a wall clock would tell it.
func (s *Sim) time() time.Time { return s.cfg.Start.Add(time.Duration(s.now)) }

// ns is a time in nanoseconds since the start of the simulation.
func (s *Sim) ns(t time.Time) int64 { return int64(t.Sub(s.cfg.Start)) }

// at plans an event. An event in the past happens now, after what is already planned for now.
func (s *Sim) at(at int64, do func()) { s.events.push(event{at: max(at, s.now), do: do}) }

// in plans an event after a while.
func (s *Sim) in(d time.Duration, do func()) { s.at(s.now+int64(d), do) }

// advance moves time, and the money with it.
func (s *Sim) advance(at int64) {
	if at > s.now {
		machines, perHour := s.cloud.Running()
		s.integrate(at-s.now, machines, perHour)
		for limit, tasks := range s.stopped {
			s.result.Stopped[limit] += time.Duration(int64(tasks) * (at - s.now))
		}
		s.now = at
	}
}

// over reports that the run may end. That is when all work is done and all machines are gone, or Linger after the last
// work. Work that is still not done three days after it could have ended also ends the run.
func (s *Sim) over() bool {
	if s.done < len(s.tasks) {
		return s.now > s.last+int64(3*24*time.Hour) // checkEnd says what is missing
	}
	if s.doneAt == 0 {
		s.doneAt = s.now
		s.cfg.Policy.Min, s.cfg.Policy.Standby, s.cfg.Policy.Retiring = 0, nil, true // now everything has to go
	}
	machines, _ := s.cloud.Running()
	return machines == 0 && s.core.Totals(s.time()).Machines == 0 || s.now > s.doneAt+int64(s.cfg.Linger)
}

// audit goes into the hash: the whole behaviour of the fleet is in it.
func (s *Sim) audit(e fleet.Audit) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(s.now))
	s.hash.Write(b[:])
	fmt.Fprint(s.hash, e.Instance, e.What, e.Why, e.Offering, e.Count)
	s.result.Actions++
	switch e.What {
	case string(fleet.ActionCreate):
		s.result.Created += e.Count
		s.result.Why[e.Why] += e.Count
		s.thrash.created(s.now, e.Offering, e.Count)
	case "adopted": // the loop syncs all nodes every ten seconds
		for _, id := range sortedKeys(s.byCloud) {
			if n := s.byCloud[id]; n.intent == e.Instance {
				s.in(10*time.Second, func() { s.callHome(n) })
			}
		}
	case "gone":
		s.thrash.destroyed(s.now, e)
	}
}
