package lessee

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/listing"
)

// listWithin is how long other servers may take to answer with their part of a list.
const listWithin = 2 * time.Second

// SelectExecutions lists what this server has alone; Directory does with several servers. Errors: Invalid, NotLeader.
func (l *Lessee) SelectExecutions(
	ctx context.Context, q execution.ListQuery, sees func(namespace string) bool,
) (execution.ListPage, error) {
	return ask(ctx, l, func(x *Life) (execution.ListPage, error) { return x.Executions.SelectExecutions(ctx, q, sees) })
}

// part is what this server's service has at the moment; nothing while there is none.
func (l *Lessee) part(ctx context.Context, q execution.ListQuery, sees func(namespace string) bool) (execution.ListPage, error) {
	life := l.life.Load()
	if life == nil {
		return execution.ListPage{}, nil
	}
	return life.Executions.SelectExecutions(ctx, q, sees)
}

// SelectExecutions lists what any server has, and what the state knows of those that ended. A server that does not answer in time is named.
// What ends meanwhile may be counted twice, but is listed once. Errors: Invalid.
func (d Directory) SelectExecutions(
	ctx context.Context, q execution.ListQuery, sees func(namespace string) bool,
) (execution.ListPage, error) {
	all, err := listing.New(q)
	if err != nil {
		return execution.ListPage{}, err
	}
	others, silent := d.askForLists(ctx, q, sees)
	own, err := d.Lessee.part(ctx, q, sees)
	if err != nil {
		return execution.ListPage{}, err
	}
	oldest := d.Lessee.deps.Clock.Now().Add(-keptFor)
	for r := range d.Store.Snapshot().Executions() { // after the others, so that what they have left out is here
		if x := &r.Execution; !x.Running && (r.Webhook != "" || r.Time().After(oldest)) && sees(execution.NamespaceOf(x.RunnerID)) {
			one := listing.OfRecord(r)
			all.Add(&one)
		}
	}
	for _, page := range append(others, own) {
		all.AddPage(&page)
	}
	page := all.Page()
	page.Silent = silent
	return page, nil
}

// keptFor is how long ended executions can be asked for.
const keptFor = 15 * time.Minute

// askForLists asks all other servers at once. Those that did not answer are named, in order.
func (d Directory) askForLists(
	ctx context.Context, q execution.ListQuery, sees func(namespace string) bool,
) (pages []execution.ListPage, silent []string) {
	in := listed{Query: q}
	s := d.Store.Snapshot()
	for n := range s.Namespaces() {
		if sees(n.Name) {
			in.Namespaces = append(in.Namespaces, n.Name)
		}
	}
	type answer struct {
		server string
		page   execution.ListPage
		err    error
	}
	ctx, cancel := d.Lessee.deps.Clock.WithTimeout(ctx, listWithin)
	defer cancel()
	self, asked := d.Network.Servers.Self().ID, map[string]bool{}
	answers := make(chan answer, len(incarnations(s)))
	for _, server := range incarnations(s) {
		if server == self || asked[server] {
			continue
		}
		asked[server] = true
		go func() { // ends with ctx
			page, err := call[execution.ListPage](ctx, d.Network, server, procList, in)
			answers <- answer{server, page, err}
		}()
	}
	for range asked {
		a := <-answers
		if a.err == nil {
			pages = append(pages, a.page)
			continue
		}
		d.Lessee.deps.Log.Debug("asking for a list of executions", "server", a.server, "error", a.err)
		name := a.server
		if known, ok := d.Network.Servers.ByID(a.server); ok {
			name = known.Name
		}
		silent = append(silent, name)
	}
	slices.Sort(silent)
	return pages, silent
}
