package scaler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// emitCreates issues as much of the purchases as rate and concurrency allow; the rest is decided again later.
func (p *plan) emitCreates() {
	b := p.in.Beliefs
	tokens, batch := b.Tokens(p.in.Now, provider.CallCreate), cmp.Or(p.in.Batch, b.Batch())
	calls := b.CreateRoom(p.in.Now)
	for _, y := range p.buys {
		n := min(y.count, tokens, calls*batch)
		p.out.Deferred += y.count - n
		if n == 0 {
			continue
		}
		tokens -= n
		calls -= (n + batch - 1) / batch
		o := &p.offers[y.offer]
		p.out.Actions = append(p.out.Actions, Action{Buys: o.Offering, Action: fleet.Action{
			Kind: fleet.ActionCreate, Offering: o.Key, Count: n, PerHour: o.Price * float64(n), Hedge: y.why == WhyHedge, Why: y.why,
			Reason: p.reason(&y),
		}})
	}
	if p.out.Deferred > 0 && tokens <= 0 { // else the end of a call in flight makes room
		p.wake(slices.MaxFunc([]time.Time{b.TokensAt(p.in.Now, provider.CallCreate, p.issued()), p.in.Now.Add(time.Second)}, time.Time.Compare))
	}
}

// reason tells people what a purchase is for; it names three kinds of work at most.
func (p *plan) reason(y *buy) string {
	if y.note != "" {
		return y.note
	}
	var s strings.Builder
	s.WriteString("cheapest for ")
	for i, t := range y.take {
		if i == 3 {
			fmt.Fprintf(&s, " and %d more kinds", len(y.take)-3)
			break
		}
		if i > 0 {
			s.WriteString(", ")
		}
		fmt.Fprintf(&s, "%d x %s", t.n, p.classes[t.class].Name)
	}
	fmt.Fprintf(&s, " on each, at %s an hour", fleet.Money(p.offers[y.offer].Price))
	return s.String()
}

// issued counts the machines that creates of this decision ask for.
func (p *plan) issued() (n int) {
	for _, a := range p.out.Actions {
		if a.Kind == fleet.ActionCreate {
			n += a.Count
		}
	}
	return n
}
