package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/term"
)

func TestDoubleDashes(t *testing.T) {
	t.Parallel()
	app := &term.App{Getenv: os.Getenv}
	for in, want := range map[string]string{
		"agent -dev -http-port 0":                       "agent --dev --http-port 0",
		"agent -config=x -help":                         "agent --config=x --help",
		"job run -var a=b -detach x.hcl":                "job run --var a=b --detach x.hcl",
		"job -namespace run run x.hcl":                  "job --namespace run run x.hcl",
		"job run -nope x.hcl":                           "job run --nope x.hcl",
		"job status -t {{.ID}} web":                     "job status -t {{.ID}} web",
		"alloc logs -f -n 5 -tail 3f -stderr":           "alloc logs -f -n 5 --tail 3f --stderr",
		"alloc exec -task t 3f ls -address -la":         "alloc exec --task t 3f ls -address -la",
		"alloc exec -i -t -job j -- sh -c x":            "alloc exec -i -t --job j -- sh -c x",
		"run scratch -f a.py -env A=b -- sh -c -stdin":  "run scratch -f a.py --env A=b -- sh -c -stdin",
		"run scratch ls -la -address x":                 "run scratch -- ls -la -address x",
		"run -address=x scratch -keep ls --all -- -b":   "run --address=x scratch --keep -- ls --all -- -b",
		"run run run -run":                              "run run -- run -run",
		"run -it scratch -- true":                       "run -it scratch -- true",
		"run -image host ls -la":                        "run --image host -- ls -la",
		"run -image=host -keep ls -la":                  "run --image=host --keep -- ls -la",
		"run -inage host ls":                            "run --inage host -- ls",
		"run -limit-wall 3s -address=http://x s -- cmd": "run --limit-wall 3s --address=http://x s -- cmd",
		"job run -=x --- -é":                            "job run -=x --- --é",
		"job run -":                                     "job run -",
	} {
		got := strings.Join(doubleDashes(NewRoot(app, Parts{}), strings.Fields(in)), " ")
		require.Equal(t, want, got, in)
	}
}

func TestEveryCommandSaysWhatItIs(t *testing.T) {
	t.Parallel()
	app := &term.App{Getenv: os.Getenv}
	todo := NewRoot(app, Parts{}).Commands()
	for len(todo) > 0 {
		c := todo[0]
		todo = append(todo[1:], c.Commands()...)
		require.NotEmpty(t, c.Short, c.CommandPath())
		require.NotNil(t, c.RunE, c.CommandPath())
	}
}

// TestShortNamesAreThoseOfFamilies: each is the command of a family with the same flags, and help does not list it.
func TestShortNamesAreThoseOfFamilies(t *testing.T) {
	t.Parallel()
	root := NewRoot(&term.App{Getenv: os.Getenv}, Parts{})
	require.Len(t, shortcuts(&term.App{}), len(short))
	for name, long := range short {
		family, of, _ := strings.Cut(long, " ")
		is, want := child(root, name), child(child(root, family), of)
		require.NotNil(t, want, long)
		require.True(t, is.Hidden, name)
		require.Equal(t, want.Short, is.Short, name)
		require.Equal(t, want.LocalFlags().FlagUsages(), is.LocalNonPersistentFlags().FlagUsages(), name)
		require.Equal(t, strings.Replace(want.UseLine(), "drover "+long, "drover "+name, 1), is.UseLine(), name)
	}
}

// TestWhatIsAbsentSaysSo: commands of Nomad's without anything to do take any words and flags, end with 1, and say one line.
func TestWhatIsAbsentSaysSo(t *testing.T) {
	t.Parallel()
	for name, says := range absent {
		var out, errs strings.Builder
		app := &term.App{Getenv: func(string) string { return "" }, In: strings.NewReader(""), Out: &out, Err: &errs}
		args := append(strings.Fields(name), "-state", "-json=false")
		require.Equal(t, term.ExitFailure, Main(t.Context(), app, Parts{}, args), name)
		require.Equal(t, "Error: "+says+"\n", errs.String())
		require.Empty(t, out.String(), name)
		c, _, err := NewRoot(app, Parts{}).Find(strings.Fields(name))
		require.NoError(t, err)
		require.True(t, c.Hidden, name)
	}
}
