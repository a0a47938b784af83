package completion

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// completionWait is how long the shell waits for an agent that does not answer.
const completionWait = 2 * time.Second

// Asked tells whether the shell asks how words may go on.
func Asked(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// Complete lets the shell complete ids and names of what there is at the agent, for all commands below c.
func Complete(app *term.App, c *cobra.Command) {
	for _, below := range c.Commands() {
		Complete(app, below)
	}
	for name, ask := range flagged {
		if c.LocalFlags().Lookup(name) != nil && c.Flag(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, answered(app, ask)) // it fails for a flag that has one already
		}
	}
	places := placesOf(c)
	if len(places) == 0 || c.HasSubCommands() {
		return
	}
	c.ValidArgsFunction = func(c *cobra.Command, before []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		at := min(len(before), len(places)-1)
		if ask := places[at]; ask != nil && (len(before) < len(places) || strings.HasSuffix(c.Use, "…")) {
			return answered(app, ask)(c, before, prefix)
		}
		return nil, cobra.ShellCompDirectiveDefault // files
	}
}

// answered asks the agent. Shells show no errors: nothing is offered then.
func answered(app *term.App, ask asked) cobra.CompletionFunc {
	return func(c *cobra.Command, before []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := app.Clock.WithTimeout(c.Context(), completionWait)
		defer cancel()
		list, err := ask(ctx, app, before, prefix)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(list, func(s string) bool { return !strings.HasPrefix(s, prefix) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// optional are the flags that a line of usage has among the words.
var optional = regexp.MustCompile(`\[-[^\]]*\]…?|\(-[^)]*\)|\[flags\]`)

// placesOf reads a command's line of usage: what may stand as its first word, its second, and so on; nil where any may.
func placesOf(c *cobra.Command) (places []asked) {
	words := strings.Fields(optional.ReplaceAllString(c.Use, ""))
	some := false
	for _, word := range words[1:] {
		word, _, _ = strings.Cut(strings.Trim(word, "[]…."), "|")
		ask := known[word]
		if ask == nil && c.HasParent() {
			ask = known[word+" of "+c.Parent().Name()]
		}
		places, some = append(places, ask), some || ask != nil
	}
	if !some {
		return nil
	}
	return places
}
