package tenants

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

//go:embed example.admission.hcl
var exampleAdmission string

// rules are the routes by which an admission rule is written and deleted.
var rules = term.Named{Kind: "Admission rule", ItemPath: "/v1/admission/rule/"}

// AdmissionCommand is "drover admission"; test is its command that reads a job file.
func AdmissionCommand(app *term.App, test *cobra.Command) *cobra.Command {
	return term.Group("admission", "Refuse jobs by rules over what their tasks ask for",
		rulePutCommand(app), ruleListCommand(app), ruleGetCommand(app), rules.DeleteCommand(app, "Delete an admission rule"), test,
		ruleInitCommand(app))
}

// rulesFile is a file of rules.
type rulesFile struct {
	Rules []struct {
		Name        string           `hcl:"name,label"`
		Description string           `hcl:"description,optional"`
		Namespaces  []string         `hcl:"namespaces,optional"`
		Level       string           `hcl:"level,optional"`
		When        string           `hcl:"when,optional"`
		Max         map[string]int64 `hcl:"max,optional"`
		Message     string           `hcl:"message,optional"`
	} `hcl:"rule,block"`
}

// readRules reads rules, or what 'admission get' prints. Errors: Invalid.
func readRules(text []byte, file string) (list []*drover.AdmissionRule, err error) {
	if term.OfAPI(text) {
		r := &drover.AdmissionRule{}
		return []*drover.AdmissionRule{r}, term.DecodeAPI(text, file, r)
	}
	var f rulesFile
	if err := term.DecodeSpec(text, file, &f); err != nil {
		return nil, err
	}
	for _, r := range f.Rules {
		list = append(list, &drover.AdmissionRule{
			Name: r.Name, Description: r.Description, Namespaces: r.Namespaces, Level: r.Level, When: strings.TrimSpace(r.When), Max: r.Max,
			Message: r.Message,
		})
	}
	if len(list) == 0 {
		return nil, drover.Errorf(drover.Invalid, "%s: it has no rule \"NAME\" { … }; 'drover admission init' writes an example", file)
	}
	return list, nil
}

// rulePutCommand is "drover admission put".
func rulePutCommand(app *term.App) *cobra.Command {
	var level string
	run := func(ctx context.Context, app *term.App, args []string) error {
		text, err := app.ReadInput(ctx, args[0])
		if err != nil {
			return err
		}
		list, err := readRules(text, args[0])
		if err != nil {
			return err
		}
		client, err := app.Nomad()
		if err != nil {
			return err
		}
		for _, r := range list {
			if level != "" {
				r.Level = level
			}
			if err := client.Put(ctx, rules.ItemPath+url.PathEscape(r.Name), nil, r, nil); err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "Admission rule %q was put.\n", r.Name)
		}
		return nil
	}
	c := term.Command(app, "put FILE|-", "Make or change admission rules", 1, 1, run)
	c.Flags().StringVar(&level, "level", "", "enforce, warn or dry-run, whatever the file says")
	term.Describe(c, `
The file has blocks rule "NAME" { … } with description, namespaces (globs; none is all), level (enforce, warn or dry-run), when (an
expression over a task's fields), max (the most that a task's numbers may be) and message. A rule is against a task of which 'when' holds
and, if it has any, one 'max' is exceeded. docs/admission.md lists the fields. What 'admission get' prints can be put, too.`, `
drover admission init
drover admission put -level dry-run admission.hcl
drover admission test job.hcl
drover admission put admission.hcl`)
	return c
}

// ruleListCommand is "drover admission list".
func ruleListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List admission rules", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*drover.AdmissionRule]{
			Path: "/v1/admission/rules", None: "There are no admission rules.", Heading: "Name|Level|Namespaces|Description",
			Row: func(r *drover.AdmissionRule) []string {
				namespaces := "*"
				if len(r.Namespaces) > 0 {
					namespaces = strings.Join(r.Namespaces, ",")
				}
				return []string{r.Name, r.Level, namespaces, r.Description}
			},
		})
	})
	o.Bind(c.Flags())
	return c
}

// ruleGetCommand is "drover admission get".
func ruleGetCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var r drover.AdmissionRule
		if _, err := c.Get(ctx, rules.ItemPath+url.PathEscape(args[0]), nil, &r); err != nil {
			return err
		}
		o.JSON = o.Template == ""
		_, err := o.Data(app.Out, &r)
		return err
	}
	c := term.NomadCommand(app, "get NAME", "Print an admission rule as JSON, as 'admission put' reads it", 1, 1, run)
	c.Flags().StringVarP(&o.Template, "template", "t", "", "print with this Go template")
	c.Flags().Bool("json", true, "print JSON, as it does anyway")
	return c
}

// ruleInitCommand is "drover admission init".
func ruleInitCommand(app *term.App) *cobra.Command {
	run := func(_ context.Context, app *term.App, args []string) error {
		file := "admission.hcl"
		if len(args) > 0 {
			file = args[0]
		}
		if err := term.WriteNew(file, exampleAdmission); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "Wrote %s. Put it with: drover admission put -level dry-run %[1]s\n", file)
		return err
	}
	return term.Command(app, "init [FILE]", "Write an example of a file of rules", 0, 1, run)
}
