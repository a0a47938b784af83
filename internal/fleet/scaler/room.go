package scaler

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// room is a number of machines with equal room for equal work.
type room struct {
	offer   int // index; -1 if it is not sold any more
	kind    roomKind
	old     string // the template that its machines are made from, if it is not the pool's
	typ     string
	fresh   bool // the scheduler had no time yet to use it
	free    vector
	machine []int // indexes of the instances
}

// roomKind is what the machines of a room do; rooms of different kinds are never joined.
type roomKind uint8

const (
	roomIdle     roomKind = iota // machines without work: whatever fits will run there
	roomPart                     // machines with work
	roomStarting                 // machines that were asked for
)

// roomKey is what equal machines have in common. A big fleet has few different ones, which keeps decisions fast.
type roomKey struct {
	offering string
	kind     roomKind
	fresh    bool
	old      string
	free     drover.Capacity
}

// place gives waiting work to machines that are there or starting, so that nothing is bought twice.
func (p *plan) place() {
	if len(p.classes) == 0 {
		return
	}
	p.findRooms()
	for i := range p.classes {
		c := &p.classes[i]
		p.elig(c)
		for r, n := 0, len(p.rooms); r < n && c.left > 0; r++ {
			p.placeInto(c, r)
		}
	}
}

func (p *plan) findRooms() {
	index := map[roomKey]int{}
	parts := p.partsCount()
	settled := p.in.Now.Add(-settle)
	look := p.special
	if parts || p.anyReadyAfter(settled) {
		look = p.all()
	}
	least := p.least()
	for _, n := range look {
		i := p.in.Instances[n]
		if i.Work > 0 && !least.fits(i) {
			continue // full, as most are: not worth a closer look
		}
		kind, ok := p.roomOf(i)
		if !ok {
			continue
		}
		fresh := kind == roomPart && i.ReadyAt.After(settled)
		if kind == roomPart && !fresh && !parts {
			continue
		}
		old := i.Template
		if old == p.template {
			old = ""
		}
		key := roomKey{i.Offering, kind, fresh, old, i.Free()}
		at, known := index[key]
		if !known {
			at = len(p.rooms)
			index[key] = at
			offer, sold := p.byKey[i.Offering]
			if !sold {
				offer = -1
			}
			r := room{offer: offer, kind: kind, fresh: fresh, old: old, typ: i.Type, free: vectorOf(key.free)}
			if sold && kind != roomPart {
				r.free = p.sized(key.free, p.offers[offer].Devices)
			}
			p.rooms = append(p.rooms, r)
		}
		p.rooms[at].machine = append(p.rooms[at].machine, n)
	}
	slices.SortStableFunc(p.rooms, func(a, b room) int { return cmp.Compare(a.kind, b.kind) })
}

// anyReadyAfter reports whether a machine began to take work after t.
func (p *plan) anyReadyAfter(t time.Time) bool {
	for _, i := range p.in.Instances {
		if i.State == fleet.InstanceActive && i.ReadyAt.After(t) {
			return true
		}
	}
	return false
}

// roomOf says whether waiting work may count on the machine. Work that waits although a partly used machine has room
// can't use it (ports, a constraint that we do not see), unless the scheduler had no time yet.
func (p *plan) roomOf(i *fleet.Instance) (roomKind, bool) {
	if i.Behavior != fleet.BehaviorRun || !i.LostAt.IsZero() || !i.InterruptAt.IsZero() || p.expired(i) {
		return 0, false
	}
	switch {
	case i.State.Starting():
		return roomStarting, !p.givenUp(i)
	case i.State != fleet.InstanceActive:
		return 0, false
	case !i.Busy():
		return roomIdle, true
	}
	return roomPart, true
}

// expired reports whether the machine is older than its policy allows.
func (p *plan) expired(i *fleet.Instance) bool {
	return !i.ExpiresAt.IsZero() && !p.in.Now.Before(i.ExpiresAt)
}

// usable says whether the class may count on the room.
func (p *plan) usable(c *class, r *room) bool {
	if r.offer >= 0 && !c.meets[r.offer] || c.strange != "" {
		return false
	}
	if len(c.Refusals) > 0 && c.Refused(p.in.Policy.Name, cmp.Or(r.old, p.template), r.typ) != "" {
		return false
	}
	if r.kind == roomPart && !c.standby {
		return r.fresh || p.in.Now.Sub(c.Since) < settle
	}
	return true
}

// all returns the indexes of all machines, where a look at the special ones is not enough.
func (p *plan) all() []int {
	list := make([]int, len(p.in.Instances))
	for n := range list {
		list[n] = n
	}
	return list
}

// least is the smallest cpu and memory that any class asks for.
type least struct{ cpu, memoryMB int64 }

// least returns the smallest cpu and memory that any piece of work asks for; what has less room is full.
func (p *plan) least() least {
	l := least{math.MaxInt64, math.MaxInt64}
	for i := range p.classes {
		l.cpu, l.memoryMB = min(l.cpu, p.classes[i].each[0]), min(l.memoryMB, p.classes[i].each[1])
	}
	return l
}

// fits reports whether the machine has room for the smallest work at all.
func (l least) fits(i *fleet.Instance) bool {
	return i.Capacity.CPU-i.Used.CPU >= l.cpu && i.Capacity.MemoryMB-i.Used.MemoryMB >= l.memoryMB
}

// partsCount reports whether any class may count on machines that have work since long.
func (p *plan) partsCount() bool {
	for i := range p.classes {
		if p.classes[i].standby || p.in.Now.Sub(p.classes[i].Since) < settle {
			return true
		}
	}
	return false
}

// placeInto fills machines of the room one after the other; those that got something become rooms of their own.
func (p *plan) placeInto(c *class, r int) {
	rm := &p.rooms[r]
	if len(rm.machine) == 0 || !p.usable(c, rm) {
		return
	}
	each := c.fit(&rm.free, c.left)
	if each == 0 {
		return
	}
	full := min(len(rm.machine), c.left/each)
	p.split(c, r, full, each)
	if rest := min(c.left, each); rest > 0 && len(p.rooms[r].machine) > 0 {
		p.split(c, r, 1, rest)
	}
}

// split takes so many machines out of room r for each pieces of the class, and keeps them from being returned. What is
// left free on them becomes a room of its own.
func (p *plan) split(c *class, r, machines, each int) {
	if machines == 0 || each == 0 {
		return
	}
	rm := &p.rooms[r]
	got := room{offer: rm.offer, kind: rm.kind, fresh: rm.fresh, old: rm.old, typ: rm.typ, free: rm.free, machine: rm.machine[:machines]}
	rm.machine = rm.machine[machines:]
	got.free.take(&c.each, each)
	for _, m := range got.machine {
		if !p.kept[m] || p.keptFor[m] < int16(c.Priority) {
			p.kept[m], p.keptFor[m] = true, int16(c.Priority)
		}
	}
	n := machines * each
	c.left -= n
	c.placed += n
	if rm.kind == roomStarting && !c.standby {
		p.onStart += n
	}
	if c.perBin == 0 || got.free != (vector{}) {
		p.rooms = append(p.rooms, got)
	}
}
