package ec2test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SpotPrice is what a type cost on the spot market of a zone from a time on.
type SpotPrice struct {
	Type, Zone string
	Price      float64
	At         time.Time // zero = since long
}

// spotPrices tells the prices that held within the asked time: those set in it, and for each type and zone the last one
// before.
func (c *Cloud) spotPrices(form map[string]string) (string, *failure) {
	from, to := c.span(form, "StartTime"), c.span(form, "EndTime")
	types, products := indexed(form, "InstanceType"), indexed(form, "ProductDescription")
	var zones []string
	switch name := form["Filter.1.Name"]; {
	case name == "availability-zone":
		zones = indexed(form, "Filter.1.Value")
	case name != "":
		return "", no("InvalidParameterValue", "The filter '%s' is invalid", name)
	}
	if len(products) > 0 && !slices.Contains(products, "Linux/UNIX") {
		return "<spotPriceHistorySet/>", nil
	}
	var held []SpotPrice
	for _, p := range c.SpotPrices {
		if p.At.After(to) || len(types) > 0 && !slices.Contains(types, p.Type) || len(zones) > 0 && !slices.Contains(zones, p.Zone) {
			continue
		}
		later := slices.ContainsFunc(c.SpotPrices, func(q SpotPrice) bool {
			return q.Type == p.Type && q.Zone == p.Zone && q.At.After(p.At) && !q.At.After(from)
		})
		if !later {
			held = append(held, p)
		}
	}
	most := c.PageMost
	if n, err := strconv.Atoi(form["MaxResults"]); err == nil {
		most = min(most, n)
	}
	at, err := strconv.Atoi(form["NextToken"])
	if form["NextToken"] != "" && (err != nil || at > len(held)) {
		return "", no("InvalidNextToken", "The token is invalid.")
	}
	var b strings.Builder
	b.WriteString("<spotPriceHistorySet>")
	end := min(at+most, len(held))
	for _, p := range held[at:end] {
		fmt.Fprintf(&b, "<item><instanceType>%s</instanceType><productDescription>Linux/UNIX</productDescription>"+
			"<spotPrice>%f</spotPrice><timestamp>%s</timestamp><availabilityZone>%s</availabilityZone></item>",
			p.Type, p.Price, p.At.Format("2006-01-02T15:04:05.000Z"), p.Zone)
	}
	b.WriteString("</spotPriceHistorySet>")
	next := ""
	if end < len(held) {
		next = strconv.Itoa(end)
	}
	fmt.Fprintf(&b, "<nextToken>%s</nextToken>", next)
	return b.String(), nil
}

// span reads a time; it is the cloud's own if it is not given.
func (c *Cloud) span(form map[string]string, name string) time.Time {
	t, err := time.Parse(time.RFC3339, form[name])
	if err != nil || c.now.Before(t) {
		return c.now
	}
	return t
}
