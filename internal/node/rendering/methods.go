package rendering

import (
	"reflect"
	"slices"
	"text/template/parse"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/drover-project/drover"
)

// The engine knows no methods (see docs/decisions/0014), but the values of consul-template have a few. The parsed template is
// changed such that .X for each of their names calls the function below, which knows the values and else looks for a field.

// methodName is the function's name; no template can spell it.
const methodName = "_method"

// methodNames are what consul-template's values can be asked.
var methodNames = []string{
	"Get", "ItemsMap", "Key", "Keys", "MapSet", "MapSetX", "MapValues", "Metadata", "Parent", "Set", "SetX", "String", "Tuples", "Values",
}

func isMethod(name string) bool {
	_, found := slices.BinarySearch(methodNames, name)
	return found
}

// withMethods changes all commands of the template and of those that it defines.
func withMethods(t *template.Template) {
	for _, one := range t.Templates() {
		if one.Tree != nil && one.Root != nil {
			rewriteNode(one.Root)
		}
	}
}

// rewriteNode changes all commands below the node.
func rewriteNode(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, in := range n.Nodes {
				rewriteNode(in)
			}
		}
	case *parse.ActionNode:
		rewritePipe(n.Pipe)
	case *parse.TemplateNode:
		rewritePipe(n.Pipe)
	case *parse.IfNode:
		rewriteBranch(&n.BranchNode)
	case *parse.WithNode:
		rewriteBranch(&n.BranchNode)
	case *parse.RangeNode:
		rewriteBranch(&n.BranchNode)
	}
}

func rewriteBranch(n *parse.BranchNode) {
	rewritePipe(n.Pipe)
	rewriteNode(n.List)
	rewriteNode(n.ElseList)
}

func rewritePipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		for i, a := range c.Args[1:] {
			c.Args[i+1] = operand(a)
		}
		// What begins the command takes its arguments, so the call is the command and not a pipe in it.
		first := operand(c.Args[0])
		if in, ok := first.(*parse.PipeNode); ok && first != c.Args[0] {
			c.Args = append(slices.Clone(in.Cmds[0].Args), c.Args[1:]...)
			continue
		}
		c.Args[0] = first
	}
}

// operand returns the node with calls in place of its methods.
func operand(n parse.Node) parse.Node {
	switch n := n.(type) {
	case *parse.PipeNode:
		rewritePipe(n)
	case *parse.FieldNode:
		if slices.ContainsFunc(n.Ident, isMethod) {
			return walk(&parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, n.Pos, n.Ident)
		}
	case *parse.VariableNode:
		if slices.ContainsFunc(n.Ident[1:], isMethod) {
			return walk(&parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}, n.Pos, n.Ident[1:])
		}
	case *parse.ChainNode:
		n.Node = operand(n.Node)
		if slices.ContainsFunc(n.Field, isMethod) {
			return walk(n.Node, n.Pos, n.Field)
		}
	}
	return n
}

// walk makes a chain of fields and calls.
func walk(from parse.Node, at parse.Pos, names []string) parse.Node {
	for _, name := range names {
		if !isMethod(name) {
			from = &parse.ChainNode{NodeType: parse.NodeChain, Pos: at, Node: from, Field: []string{name}}
			continue
		}
		call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{
			parse.NewIdentifier(methodName).SetPos(at), from,
			&parse.StringNode{NodeType: parse.NodeString, Pos: at, Quoted: `"` + name + `"`, Text: name},
		}}
		from = &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{call}}
	}
	return from
}

// call is the function. strict: a key that a map lacks is an error.
func call(strict bool) func(on any, name string, args ...any) (any, error) {
	return func(on any, name string, args ...any) (any, error) {
		if s, ok := on.(scratch); ok {
			return s.call(name, args)
		}
		if len(args) > 0 {
			return nil, drover.Errorf(drover.Invalid, "%s is not a method but has arguments", name)
		}
		if v, ok := ask(on, name); ok {
			return v, nil
		}
		return field(on, name, strict)
	}
}

// ask returns what a method without arguments does.
func ask(on any, name string) (any, bool) {
	switch on := on.(type) {
	case items:
		return on.ask(name)
	case item:
		switch name {
		case "String":
			return on.Value, true
		case "Parent":
			return on.of, true
		case "Metadata":
			return &on.of.meta, true
		}
	case *variable:
		if name == "Metadata" && on != nil {
			return &on.meta, true
		}
	case *meta:
		if name == "String" && on != nil {
			return on.Path, true
		}
	case nanoTime:
		if name == "String" {
			return on.String(), true
		}
	}
	return nil, false
}

// ask returns what a method of a variable's items does.
func (v items) ask(name string) (any, bool) {
	keys := v.keys()
	switch name {
	case "Keys":
		return keys, true
	case "Values":
		out := make([]string, len(keys))
		for i, k := range keys {
			out[i] = v[k].Value
		}
		return out, true
	case "Tuples":
		out := make([]tuple, len(keys))
		for i, k := range keys {
			out[i] = tuple{k, v[k].Value}
		}
		return out, true
	case "ItemsMap":
		out := map[string]any{}
		for _, k := range keys {
			out[k] = v[k].Value
		}
		return out, true
	case "Parent":
		return v.of(), true
	case "Metadata":
		if of := v.of(); of != nil {
			return &of.meta, true
		}
		return (*meta)(nil), true
	}
	return nil, false
}

// call does what a method of a scratch does. What changes it prints nothing.
func (s scratch) call(name string, args []any) (any, error) {
	text := func(i int) string {
		if i < len(args) {
			t, _ := args[i].(string)
			return t
		}
		return ""
	}
	arity := map[string]int{"Key": 1, "Get": 1, "Set": 2, "SetX": 2, "MapSet": 3, "MapSetX": 3, "MapValues": 1}
	if n, ok := arity[name]; !ok || n != len(args) || text(0) == "" {
		return nil, drover.Errorf(drover.Invalid, "scratch.%s: there is no such method of %d arguments that begin with a name", name, len(args))
	}
	_, has := s[text(0)]
	switch name {
	case "Key":
		return has, nil
	case "Get":
		return s[text(0)], nil
	case "MapValues":
		return s.mapValues(text(0)), nil
	case "MapSet", "MapSetX":
		return "", s.mapSet(text(0), text(1), args[2], name == "MapSet")
	}
	if !has || name == "Set" {
		s[text(0)] = args[1]
	}
	return "", nil
}

// field looks for a field or a key, as the engine does.
func field(on any, name string, strict bool) (any, error) {
	v := reflect.ValueOf(on)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		if f := v.FieldByName(name); f.IsValid() && f.CanInterface() {
			return f.Interface(), nil
		}
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			if f := v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key())); f.IsValid() {
				return f.Interface(), nil
			}
			if strict {
				return nil, drover.Errorf(drover.Invalid, "map has no entry for key %q", name)
			}
			return nil, nil
		}
	case reflect.Invalid:
		if strict {
			return nil, drover.Errorf(drover.Invalid, "nil data; no entry for key %q", name)
		}
		return nil, nil
	}
	return nil, drover.Errorf(drover.Invalid, "can't evaluate field %s in type %T", name, on)
}
