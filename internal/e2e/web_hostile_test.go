package e2e

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// TestHostileNamesInABrowser: whatever is named with markup, and with what turns text round, stays text where it stands, on each page that
// shows it, and turns nothing beside it.
func TestHostileNamesInABrowser(t *testing.T) {
	t.Parallel()
	const name = `<img/src=x/onerror=window.pwned=1>` + "\u202Etxt.exe"
	a := dev(t)
	c := a.nomad()
	job := rawJob(name, "service", "/bin/sh", "-c", `echo '`+name+`'; mkdir '<img src=x onerror=pwned=1>'; exec sleep 600`)
	job.Name, job.TaskGroups[0].Name, job.TaskGroups[0].Tasks[0].Name = new(name), new("<b>group"), "<b>task\u202E"
	job.Meta = map[string]string{name: name}
	_, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	alloc := allocation(t, c, name, "running")
	_, err = c.Namespaces().Register(&api.Namespace{Name: "team", Description: name}, nil)
	require.NoError(t, err)
	_, _, err = c.Variables().Create(&api.Variable{Path: "app/db", Items: api.VariableItems{"user": name}}, nil)
	require.NoError(t, err)
	volume, _, volumeErr := c.HostVolumes().Create(&api.HostVolumeCreateRequest{Volume: &api.HostVolume{Name: name}}, nil)
	native, r := inRunner(t, a)
	require.NoError(t, native.WriteFile(t.Context(), r.ID, execution.FileChange{Path: "<b>\u202Etxt.exe"}, strings.NewReader(name)))
	x, err := native.StartExecution(t.Context(), r.ID, execution.Request{Spec: execution.Spec{
		Argv: []string{"/bin/echo", name}, Detach: time.Minute,
	}})
	require.NoError(t, err)
	of := "/ui/jobs/" + url.PathEscape(name+"@default")
	paths := []string{
		"/ui/", "/ui/jobs", of, of + "/versions", of + "/evaluations", of + "/deployments", of + "/definition", "/ui/allocations",
		"/ui/allocations/" + alloc.ID, "/ui/allocations/" + alloc.ID + "/logs", "/ui/allocations/" + alloc.ID + "/files",
		"/ui/clients/" + alloc.NodeID, "/ui/topology?job=" + url.QueryEscape(name+"@default"), "/ui/namespaces", "/ui/namespaces/team",
		"/ui/variable?namespace=default&path=app%2Fdb&values=shown", "/ui/volumes", "/ui/runners/" + r.ID, "/ui/runners/" + r.ID + "/files",
		"/ui/executions", "/ui/executions/" + x.ID, "/ui/search?q=" + url.QueryEscape(name), "/ui/jobs/run?job=" + url.QueryEscape(name),
		"/ui/events", "/ui/evaluations", "/ui/deployments",
	}
	if volumeErr == nil { // it may be refused
		paths = append(paths, "/ui/volumes/"+volume.Volume.ID)
	}
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860))
	shown := 0
	for _, path := range paths {
		b.open("http://"+a.addr, path)
		require.True(t, eval[bool](b, `!('pwned' in window) && document.querySelectorAll('main :is(img, b, i, script)').length === 0`), path)
		// A text that turns stands in an element that isolates it.
		turned := eval[[]string](b, `(() => {
			const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
			while (walk.nextNode()) {
				const at = walk.currentNode.parentElement;
				if (!walk.currentNode.data.includes('\u202e') || at.closest('bdi, pre, textarea, option')) continue;
				out.push(at.outerHTML.slice(0, 200));
			}
			return out; })()`)
		require.Empty(t, turned, path)
		if eval[bool](b, `document.body.textContent.includes('onerror=window.pwned')`) {
			shown++
		}
		if path == of {
			b.picture("hostile-job")
		}
	}
	require.Greater(t, shown, 12)
}
