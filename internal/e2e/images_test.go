package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/registry/registrytest"
)

// saying is an image with busybox that prints the text.
func saying(t *testing.T, text string) v1.Image {
	t.Helper()
	program, err := exec.LookPath("busybox")
	require.NoError(t, err, "Debian's busybox-static is needed")
	data, err := os.ReadFile(program)
	require.NoError(t, err)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, content := range map[string][]byte{"busybox": data, "text": []byte(text)} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err = w.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(archive.Bytes(), types.DockerUncompressedLayer))
	require.NoError(t, err)
	file, err := img.ConfigFile()
	require.NoError(t, err)
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config.Cmd = "linux", runtime.GOARCH, []string{"/busybox", "cat", "/text"}
	img, err = mutate.ConfigFile(img, file)
	require.NoError(t, err)
	return img
}

// imageJob is a batch job of one sandbox with the image.
func imageJob(id, image string) *api.Job {
	j := rawJob(id, "batch", "")
	task := j.TaskGroups[0].Tasks[0]
	task.Driver, task.Config = "sandbox", map[string]any{"image": image}
	return j
}

// runnerSays claims a runner of the environment e, and requires that its image says so.
func (a *agent) runnerSays(want string) {
	t, native := a.t, a.native()
	t.Helper()
	runner, err := native.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute})
	require.NoError(t, err)
	x, err := native.StartExecution(t.Context(), runner.ID, execution.Request{Spec: execution.Spec{
		Argv: []string{"/busybox", "grep", "-q", want, "/text"},
	}})
	require.NoError(t, err)
	x, err = native.WaitExecution(t.Context(), x.ID)
	require.NoError(t, err)
	require.Zero(t, x.Receipt.ExitCode, "%+v", x.Receipt)
	require.NoError(t, native.Release(t.Context(), runner.ID))
}

// TestImagesArePinnedAndSigned: what runs is what was registered and signed, in jobs and environments, whatever the registry does with the
// tag afterwards.
func TestImagesArePinnedAndSigned(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c := a.nomad()
	r, signer := registrytest.New(t, "", ""), registrytest.NewSigner(t, "")
	restrict := func(images map[string]any) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"Name": "default", "Images": images})
		require.NoError(t, err)
		status, answer := a.request("PUT", "/v1/namespace", string(body))
		require.Equal(t, 200, status, answer)
	}
	restrict(map[string]any{"Registries": []string{r.Host}, "Pin": "resolve", "SignedBy": []string{signer.PEM}})
	ref, first := r.Push(t, "app:1", saying(t, "one"))

	_, _, err := c.Jobs().Register(imageJob("early", ref), nil)
	require.NoError(t, err)
	failed := allocation(t, c, "early", "failed")
	var said string
	for _, e := range failed.TaskStates["main"].Events {
		said += e.DisplayMessage + "\n"
	}
	require.Contains(t, said, `namespace "default" runs signed images only: image `+ref+"@"+first.String())
	require.Contains(t, said, "there is no sha256-"+first.Hex+".sig beside it")

	r.Sign(t, signer, "app", first)
	_, _, err = c.Jobs().Register(imageJob("j", ref), nil)
	require.NoError(t, err)
	require.Equal(t, "one", logs(t, c, allocation(t, c, "j", "complete").ID, "stdout"))
	stored, _, err := c.Jobs().Info("j", nil)
	require.NoError(t, err)
	require.Equal(t, ref+"@"+first.String(), stored.TaskGroups[0].Tasks[0].Config["image"])
	parent := imageJob("p", ref)
	parent.ParameterizedJob = &api.ParameterizedJobConfig{}
	_, _, err = c.Jobs().Register(parent, nil)
	require.NoError(t, err)
	native := a.native()
	_, full, err := native.PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: ref, PoolSize: 1}, time.Minute)
	require.NoError(t, err)
	require.True(t, full)
	a.runnerSays("one")

	// The tag moves to what nobody signed.
	_, second := r.Push(t, "app:1", saying(t, "two"))
	dispatched, _, err := c.Jobs().Dispatch("p", nil, nil, "", nil)
	require.NoError(t, err)
	require.Equal(t, "one", logs(t, c, allocation(t, c, dispatched.DispatchedJobID, "complete").ID, "stdout"))
	a.runnerSays("one")
	a.runnerSays("one")
	plan, _, err := c.Jobs().Plan(imageJob("j", ref), true, nil)
	require.NoError(t, err)
	diff, err := json.Marshal(plan.Diff)
	require.NoError(t, err)
	require.Contains(t, string(diff), first.String())
	require.Contains(t, string(diff), second.String())
	r.Sign(t, signer, "app", second)
	_, _, err = c.Jobs().Register(imageJob("j2", ref), nil)
	require.NoError(t, err)
	require.Equal(t, "two", logs(t, c, allocation(t, c, "j2", "complete").ID, "stdout"))

	// A key that is taken back signs nothing any more, whatever was registered.
	restrict(map[string]any{"Registries": []string{r.Host}, "Pin": "resolve", "SignedBy": []string{registrytest.NewSigner(t, "").PEM}})
	dispatched, _, err = c.Jobs().Dispatch("p", nil, nil, "", nil)
	require.NoError(t, err)
	allocation(t, c, dispatched.DispatchedJobID, "failed")

	r.Stop()
	_, _, err = c.Jobs().Register(imageJob("late", ref), nil)
	require.ErrorContains(t, err, fmt.Sprintf(`job.group[group].task[main].config.image (namespace %q)`, drover.DefaultNamespace))
	require.ErrorContains(t, err, "reaching the registry")
	restrict(nil)
	require.NoError(t, native.DeleteEnvironment(t.Context(), "e"))
}
