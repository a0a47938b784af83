package rendering

import (
	"text/template/parse"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/drover-project/drover"
)

// maxRounds bounds how often the loops and nested templates of one template go round together.
const maxRounds = 100_000

// tickName is no name that consul-template has; a template that calls it only spends its own rounds.
const tickName = "_tick"

// ticker is a template function that refuses to be called too often: a template that loops for ever is told so at once,
// and not after the time that it may take.
func ticker() func() (string, error) {
	rounds := 0
	return func() (string, error) {
		if rounds++; rounds > maxRounds {
			return "", drover.Errorf(drover.TooLarge, "its loops go round more than %d times", maxRounds)
		}
		return "", nil
	}
}

// bound has each round of a loop, and each template that is called, begin with a tick.
func bound(t *template.Template) error {
	tick, err := parse.Parse("tick", "{{"+tickName+"}}", "", "", map[string]any{tickName: ticker})
	if err != nil {
		return err
	}
	for _, one := range t.Templates() {
		if one.Tree != nil && one.Root != nil {
			boundList(one.Root, tick["tick"].Root.Nodes[0])
			one.Root.Nodes = append([]parse.Node{tick["tick"].Root.Nodes[0]}, one.Root.Nodes...)
		}
	}
	return nil
}

// boundList adds the tick to every loop in the list, at any depth. Only these nodes of text/template contain others, and
// a new kind of node in a later Go would have to be added here.
func boundList(list *parse.ListNode, tick parse.Node) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			boundList(n.List, tick)
			boundList(n.ElseList, tick)
			n.List.Nodes = append([]parse.Node{tick}, n.List.Nodes...)
		case *parse.IfNode:
			boundList(n.List, tick)
			boundList(n.ElseList, tick)
		case *parse.WithNode:
			boundList(n.List, tick)
			boundList(n.ElseList, tick)
		}
	}
}
