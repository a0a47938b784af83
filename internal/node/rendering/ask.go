package rendering

import (
	"encoding/json"
	"regexp"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/internal/registration"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/service"
)

// maxQuestions bounds what one template asks.
const maxQuestions = 1000

// AskFile is the question for a file of the task; the answer is its text. The node answers it, and not control.
const AskFile = "file"

// Asked is a question as a template put it.
type Asked struct {
	exchange.Question
	Shown string // as people see it: nomad.var.block(nomad/jobs/x@default.global)
}

// asking is what one rendering asks. What has no answer yet is missing.
type asking struct {
	namespace, region string
	known             map[exchange.Question]string
	used, missing     []Asked
	seen              map[Asked]bool
	hidden            []string // values that no error may tell
}

// ask returns the answer's data; "" is that there is none, or not yet: then known is false.
func (a *asking) ask(q Asked) (data string, known bool, err error) {
	if !a.seen[q] {
		if len(a.used) == maxQuestions {
			return "", false, drover.Errorf(drover.TooLarge, "it asks for more than %d variables, services and files", maxQuestions)
		}
		a.seen[q] = true
		a.used = append(a.used, q)
	}
	data, known = a.known[q.Question]
	if !known {
		a.lacks(q)
	}
	return data, known, nil
}

func (a *asking) lacks(q Asked) {
	for _, m := range a.missing {
		if m == q {
			return
		}
	}
	a.missing = append(a.missing, q)
}

// What consul-template takes as the name of a variable, a prefix of names, a service, and all services.
var (
	variableName = lazyregexp.New(`^/?([^@]+)(?:@([\w\-]+))?(?:\.([\w\-]+))?$`)
	prefixName   = lazyregexp.New(`^/?([^@]*)(?:@([\w\-]+|\*))?(?:\.([\w\-]+))?$`)
	serviceName  = lazyregexp.New(`^(?:([\w=:.\-]+)\.)?([\w\-]+)(?:@([\w.\-]+))?$`)
)

// variable parses PATH[@NAMESPACE[.REGION]] of the function.
func (a *asking) variable(function, kind string, form *regexp.Regexp, s string) (Asked, error) {
	s = strings.TrimSpace(s)
	if kind == exchange.AskVariable {
		s = strings.Trim(s, "/")
	}
	m := form.FindStringSubmatch(s)
	if m == nil {
		return Asked{}, drover.Errorf(drover.Invalid, "%s: the format is PATH@NAMESPACE, got %q", function, s)
	}
	path, namespace, region := m[1], m[2], m[3]
	if namespace == "" {
		namespace = a.namespace
		if region != "" { // the last part of a path may have a dot in it
			path, region = path+"."+region, ""
		}
	}
	if err := a.own(region); err != nil {
		return Asked{}, err
	}
	return Asked{
		exchange.Question{Kind: kind, Namespace: namespace, Name: path}, function + "(" + path + "@" + namespace + "." + a.region + ")",
	}, nil
}

// own refuses other regions than this one.
func (a *asking) own(region string) error {
	if region != "" && region != a.region {
		return drover.Errorf(drover.NotImplemented, "region %q: templates read what is in their own region, %q", region, a.region)
	}
	return nil
}

// functions are those that ask.
func (a *asking) functions() template.FuncMap {
	return template.FuncMap{
		"nomadVar": a.nomadVar, "nomadVarExists": a.nomadVarExists,
		"nomadVarList":     func(s ...string) ([]*meta, error) { return a.nomadVarList(true, s) },
		"nomadVarListSafe": func(s ...string) ([]*meta, error) { return a.nomadVarList(false, s) },
		"nomadService":     a.nomadService, "nomadServices": a.nomadServices, "file": a.file,
	}
}

// nomadVar returns the items of a variable. One that is not there is waited for.
func (a *asking) nomadVar(s string) (items, error) {
	if s == "" {
		return nil, nil
	}
	q, err := a.variable("nomad.var.block", exchange.AskVariable, variableName(), s)
	if err != nil {
		return nil, err
	}
	data, _, err := a.ask(q)
	if err != nil || data == "" {
		a.lacks(q)
		return nil, err
	}
	v := &secrets.Variable{}
	if err := json.Unmarshal([]byte(data), v); err != nil {
		return nil, drover.Errorf(drover.Internal, "%s: %w", q.Shown, err)
	}
	for _, value := range v.Items {
		a.hidden = append(a.hidden, value)
	}
	return newVariable(v).Items, nil
}

// nomadVarExists reports whether the variable is there now.
func (a *asking) nomadVarExists(s string) (bool, error) {
	if s == "" {
		return false, nil
	}
	q, err := a.variable("nomad.var.get", exchange.AskVariable, variableName(), s)
	if err != nil {
		return false, err
	}
	data, _, err := a.ask(q)
	return data != "", err
}

// nomadVarList lists the variables below a prefix. Unless none is fine, it is waited for the first.
func (a *asking) nomadVarList(none bool, s []string) ([]*meta, error) {
	if len(s) > 1 {
		return nil, drover.Errorf(drover.Invalid, "nomadVarList takes one prefix or none, got %d arguments", len(s))
	}
	q, err := a.variable("nomad.var.list", exchange.AskVariables, prefixName(), strings.Join(s, ""))
	if err != nil {
		return nil, err
	}
	data, known, err := a.ask(q)
	if err != nil || !known {
		return nil, err
	}
	var list []*secrets.VariableMetadata
	if err := json.Unmarshal([]byte(data), &list); err != nil {
		return nil, drover.Errorf(drover.Internal, "%s: %w", q.Shown, err)
	}
	out := []*meta{}
	for _, m := range list {
		out = append(out, newMeta(*m))
	}
	if len(out) == 0 && !none {
		a.lacks(q)
	}
	return out, nil
}

// nomadService returns where a service is found: nomadService "NAME", or nomadService COUNT "KEY" "NAME", which picks some.
func (a *asking) nomadService(args ...any) ([]*serviceValue, error) {
	count, key := 0, ""
	name, ok := "", false
	switch len(args) {
	case 1:
		name, ok = args[0].(string)
	case 3:
		n, isCount := args[0].(int)
		k, isKey := args[1].(string)
		name, ok = args[2].(string)
		ok = ok && isCount && isKey && n > 0
		count, key = n, k
	}
	m := serviceName().FindStringSubmatch(name)
	if !ok || m == nil {
		return nil, drover.Errorf(drover.Invalid, `nomadService: give "[TAG.]NAME", or how many, a key and the name: nomadService 2 "key" "NAME"`)
	}
	if err := a.own(m[3]); err != nil {
		return nil, err
	}
	data, known, err := a.ask(Asked{
		exchange.Question{Kind: exchange.AskService, Namespace: a.namespace, Name: m[2]}, "nomad.service(" + name + ")",
	})
	if err != nil || !known {
		return nil, err
	}
	var list []*service.Registration
	if err := json.Unmarshal([]byte(data), &list); err != nil {
		return nil, drover.Errorf(drover.Internal, "nomad.service(%s): %w", name, err)
	}
	if count > 0 {
		list = registration.Choose(list, count, key)
	}
	return services(list, m[1]), nil
}

// nomadServices lists the services of the task's namespace.
func (a *asking) nomadServices(s ...string) ([]*snippet, error) {
	if region := strings.Join(s, ""); region != "" && !strings.HasPrefix(region, "@") {
		return nil, drover.Errorf(drover.Invalid, "nomadServices: the format is @REGION, got %q", region)
	} else if err := a.own(strings.TrimPrefix(region, "@")); err != nil {
		return nil, err
	}
	data, known, err := a.ask(Asked{exchange.Question{Kind: exchange.AskServices, Namespace: a.namespace}, "nomad.services"})
	if err != nil || !known {
		return nil, err
	}
	var list []exchange.ServiceTags
	if err := json.Unmarshal([]byte(data), &list); err != nil {
		return nil, drover.Errorf(drover.Internal, "nomad.services: %w", err)
	}
	out := []*snippet{}
	for _, s := range list {
		out = append(out, &snippet{s.ServiceName, sorted(s.Tags)})
	}
	return out, nil
}

// file returns the text of a file of the task's.
func (a *asking) file(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, _, err := a.ask(Asked{exchange.Question{Kind: AskFile, Name: strings.TrimSpace(path)}, "file(" + path + ")"})
	return data, err
}
