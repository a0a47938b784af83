package insight

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/volume"
)

// State is the snapshot that is judged.
type State interface {
	Nodes(prefix string) iter.Seq[*drover.Node]
	Job(namespace, id string) *drover.Job
	Evaluations(namespace, prefix string) iter.Seq[*drover.Evaluation]
	Deployments(namespace, prefix string) iter.Seq[*drover.Deployment]
	HostVolumes(namespace, prefix string) iter.Seq[*volume.HostVolume]
}

// Facts are what is known at one time.
type Facts struct {
	Now          time.Time
	State        State
	Servers      Servers
	Environments []execution.PoolStatus
	Pools        []fleet.PoolStatus
	Machines     []fleet.Instance
	Unknown      map[string]string // why the facts of an area could not be found out, by the area
}

// Servers are the servers as autopilot judges them.
type Servers struct {
	Healthy   bool
	Tolerance int // how many voters may fail at once
	List      []Server
}

// Server is one of them.
type Server struct {
	ID, Name string
	Status   string // of its gossip
	Healthy  bool
	Voter    bool
	Since    time.Time // since when Healthy is what it is
}

// Report is what was found, for all viewers.
type Report struct {
	at       time.Time
	concerns []cluster.Concern // the worst first

	unknown               map[string]string   // as in Facts
	servers, nodes, fleet string              // what the areas say; "" if there is nothing of it
	evaluations           map[string]*queue   // by namespace
	deployments           map[string]*rolling // likewise
	environments          map[string]*warmth  // likewise
	volumes               map[string]*shelf   // likewise

	waitingAtFleet map[string]*fleet.Waiting // by class, while it is made
}

// mostAlike is how many concerns with one code a viewer is told one by one.
const mostAlike = 5

// Judge finds what wants attention.
func Judge(f Facts) *Report {
	r := &Report{
		at: f.Now, evaluations: map[string]*queue{}, deployments: map[string]*rolling{}, environments: map[string]*warmth{},
		volumes:        map[string]*shelf{},
		waitingAtFleet: map[string]*fleet.Waiting{}, unknown: f.Unknown,
	}
	for area, why := range f.Unknown {
		r.add(cluster.Concern{
			Code: cluster.AreaUnknown, Area: area, State: cluster.Broken, Says: fmt.Sprintf("nothing is known of %s: %s", area, why),
		})
	}
	r.judgeServers(f.Servers)
	r.judgeNodes(f.State)
	r.judgeFleet(f.Pools, f.Machines)
	r.judgeEvaluations(f.State)
	r.judgeDeployments(f.State)
	r.judgeEnvironments(f.Environments)
	r.judgeVolumes(f.State)
	r.waitingAtFleet = nil
	slices.SortStableFunc(r.concerns, func(a, b cluster.Concern) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(slices.Index(areas, a.Area), slices.Index(areas, b.Area)),
			cmp.Compare(a.Code, b.Code), a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Subject, b.Subject))
	})
	return r
}

// areas in their order.
var areas = []string{
	cluster.AreaServers, cluster.AreaNodes, cluster.AreaEvaluations, cluster.AreaDeployments, cluster.AreaEnvironments, cluster.AreaFleet,
	cluster.AreaVolumes,
}

// rank is 0 of the worst state.
func rank(state string) int {
	return slices.Index([]string{cluster.Broken, cluster.Weak, cluster.OK}, state)
}

func (r *Report) add(c cluster.Concern) {
	c.Count = max(c.Count, 1)
	r.concerns = append(r.concerns, c)
}

// For is what a viewer may see of the report.
func (r *Report) For(v cluster.Viewer) cluster.Attention {
	out := cluster.Attention{At: r.at, State: cluster.OK, Areas: []cluster.Area{}, Concerns: []cluster.Concern{}}
	for _, name := range areas {
		if says := r.says(name, v); says != "" {
			out.Areas = append(out.Areas, cluster.Area{Name: name, State: cluster.OK, Says: says})
		}
	}
	alike := map[string]int{}  // how many were told, by code
	others := map[string]int{} // where in the list those stand that are not
	for _, c := range r.concerns {
		at := slices.IndexFunc(out.Areas, func(a cluster.Area) bool { return a.Name == c.Area })
		if at < 0 || !sees(v, &c) {
			continue
		}
		out.Areas[at].State = worse(out.Areas[at].State, c.State)
		out.State = worse(out.State, c.State)
		if alike[c.Code]++; alike[c.Code] <= mostAlike {
			out.Concerns = append(out.Concerns, c)
			continue
		}
		place, begun := others[c.Code]
		if !begun {
			place = len(out.Concerns)
			others[c.Code] = place
			out.Concerns = append(out.Concerns, cluster.Concern{Code: c.Code, Area: c.Area, State: c.State, Since: c.Since})
		}
		rest := &out.Concerns[place]
		rest.Count++
		rest.Says = fmt.Sprintf("%d more of the same kind", rest.Count)
	}
	return out
}

func worse(a, b string) string {
	if rank(b) < rank(a) {
		return b
	}
	return a
}

// sees reports whether the viewer sees a concern of an area that they see.
func sees(v cluster.Viewer, c *cluster.Concern) bool {
	switch {
	case c.Namespace == "": // it is about all of the area
	case c.Area == cluster.AreaEvaluations, c.Area == cluster.AreaDeployments:
		return v.Jobs(c.Namespace)
	case c.Area == cluster.AreaEnvironments:
		return v.Runners(c.Namespace)
	case c.Area == cluster.AreaVolumes:
		return v.Volumes(c.Namespace)
	}
	return true
}

// says is what an area says to a viewer; "" if they do not see it, or if there is nothing of it.
func (r *Report) says(area string, v cluster.Viewer) string {
	why, unknown := r.unknown[area]
	switch {
	case unknown && (area == cluster.AreaEnvironments && v.Runners("*") || area == cluster.AreaFleet && v.Fleet):
		return "Unknown: " + why
	case area == cluster.AreaServers && v.Servers:
		return r.servers
	case area == cluster.AreaNodes && v.Nodes:
		return r.nodes
	case area == cluster.AreaEvaluations && v.Jobs("*"):
		return sum(r.evaluations, v.Jobs, (*queue).plus).String()
	case area == cluster.AreaDeployments && v.Jobs("*"):
		return sum(r.deployments, v.Jobs, (*rolling).plus).String()
	case area == cluster.AreaEnvironments && v.Runners("*"):
		return sum(r.environments, v.Runners, (*warmth).plus).String()
	case area == cluster.AreaFleet && v.Fleet:
		return r.fleet
	case area == cluster.AreaVolumes && v.Volumes("*"):
		return sum(r.volumes, v.Volumes, (*shelf).plus).String()
	}
	return ""
}

// sum adds up the numbers of the namespaces that are seen.
func sum[T any](all map[string]*T, seen func(namespace string) bool, plus func(total, one *T)) *T {
	total := new(T)
	for namespace, one := range all {
		if seen(namespace) {
			plus(total, one)
		}
	}
	return total
}

// in is what is counted of a namespace.
func in[T any](all map[string]*T, namespace string) *T {
	if all[namespace] == nil {
		all[namespace] = new(T)
	}
	return all[namespace]
}

// of counts things in words: "no node", "1 node", "3 nodes".
func of(n int, one, several string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// ago is how long ago a time was, rounded for people.
func (r *Report) ago(t time.Time) time.Duration {
	d := r.at.Sub(t)
	if d > time.Hour {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}
