package ec2test

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// failure is an answer that says no.
type failure struct {
	status        int
	code, message string
	retry         int
}

// no is a refusal with status 400, as EC2 gives for every mistake of the caller.
func no(code, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: code, message: fmt.Sprintf(format, args...)}
}

// ServeHTTP answers one request of the query API, or of the metadata service, which only a machine has. Faults that were
// ordered for an action come before its real answer.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if strings.HasPrefix(r.URL.Path, "/latest/") || strings.HasPrefix(r.URL.Path, "/machine/") {
		c.metadata(w, r)
		return
	}
	values, err := url.ParseQuery(string(body))
	form := map[string]string{}
	for k, v := range values {
		form[k] = v[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Wall {
		c.now = time.Now()
	}
	action := form["Action"]
	c.Calls[action]++
	fault, failing := c.fault(action)
	if failing && !fault.After {
		if fault.Hang {
			c.hang(r)
		}
		if fault.Code == "" {
			panic(http.ErrAbortHandler)
		}
		answerNo(w, &failure{fault.Status, fault.Code, "as the test wants it", fault.Retry})
		return
	}
	answer, refused := c.act(r, body, action, form, err)
	switch {
	case failing:
		if fault.Hang {
			c.hang(r)
		}
		panic(http.ErrAbortHandler) // it was done, and nobody hears of it
	case refused != nil:
		answerNo(w, refused)
	default:
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		fmt.Fprintf(w, "%s<%sResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>%s</requestId>%s</%sResponse>", xml.Header,
			action, c.name("req"), answer, action)
	}
}

// hang waits until the caller gave up, without the lock.
func (c *Cloud) hang(r *http.Request) {
	c.mu.Unlock()
	<-r.Context().Done()
	c.mu.Lock()
	panic(http.ErrAbortHandler)
}

// fault takes the next fault that was ordered for the action; each happens once.
func (c *Cloud) fault(action string) (f Fault, ok bool) {
	if len(c.faults[action]) == 0 {
		return f, false
	}
	f, c.faults[action] = c.faults[action][0], c.faults[action][1:]
	if f.Status == 0 {
		f.Status = http.StatusBadRequest
	}
	return f, true
}

// answerNo writes a refusal in EC2's XML.
func answerNo(w http.ResponseWriter, f *failure) {
	if f.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retry))
	}
	w.WriteHeader(f.status)
	fmt.Fprintf(w, "%s<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>req-1</RequestID></Response>",
		xml.Header, f.code, text(f.message))
}

// text escapes.
func text(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes everything
	return b.String()
}

// act checks the signature, the version and the rate, and then performs the action. It returns the inner XML of the
// answer.
func (c *Cloud) act(r *http.Request, body []byte, action string, form map[string]string, bad error) (string, *failure) {
	if f := c.authenticate(r, body); f != nil {
		return "", f
	}
	if bad != nil || form["Version"] != "2016-11-15" {
		return "", no("InvalidParameterValue", "bad form or version %q", form["Version"])
	}
	if c.throttled(action) {
		return "", &failure{http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded.", 0}
	}
	switch action {
	case "RunInstances":
		return c.run(form)
	case "DescribeInstances":
		return c.describe(form)
	case "TerminateInstances":
		return c.terminate(form)
	case "CreateTags":
		return c.createTags(form)
	case "GetConsoleOutput":
		return c.console(form)
	case "DescribeSpotPriceHistory":
		return c.spotPrices(form)
	}
	return "", no("InvalidAction", "The action %s is not valid for this web service.", action)
}

// run is RunInstances. The same client token with the same parameters returns the same instances; with others it is an
// error, as in EC2.
func (c *Cloud) run(form map[string]string) (string, *failure) {
	canonical := url.Values{}
	for k, v := range form {
		canonical.Set(k, v)
	}
	token := form["ClientToken"]
	if old := c.byToken[token]; token != "" && old != nil {
		if old.form != canonical.Encode() {
			return "", no("IdempotentParameterMismatch",
				"Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
		}
		return c.reservationXML(old, c.now), nil
	}
	least, _ := strconv.Atoi(form["MinCount"])
	most, _ := strconv.Atoi(form["MaxCount"])
	zone, typ, market := form["Placement.AvailabilityZone"], form["InstanceType"], marketOf(form)
	switch {
	case form["ImageId"] == "":
		return "", no("MissingParameter", "The request must contain the parameter ImageId")
	case !strings.HasPrefix(form["ImageId"], "ami-"):
		return "", no("InvalidAMIID.Malformed", "Invalid id: %q", form["ImageId"])
	case least < 1 || most < least:
		return "", no("InvalidParameterValue", "bad MinCount or MaxCount")
	case !slices.Contains(c.Types, typ):
		return "", no("InvalidParameterValue", "Invalid value '%s' for InstanceType.", typ)
	case c.SoldOut[typ] || c.SoldOut[typ+"/"+zone+"/"+market]:
		f := no("InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).",
			typ, zone)
		f.status = http.StatusInternalServerError
		return "", f
	}
	if q := c.Quota[typ]; q != 0 && c.running(typ)+most > max(q, 0) {
		return "", no("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows.", max(q, 0))
	}
	data, err := base64.StdEncoding.DecodeString(form["UserData"])
	if err != nil || len(data) > 16384 {
		return "", no("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data, or too long.")
	}
	res := &reservation{id: c.name("r"), form: canonical.Encode()}
	var tags []tagged
	for n := 1; form[fmt.Sprintf("TagSpecification.%d.ResourceType", n)] != ""; n++ {
		if form[fmt.Sprintf("TagSpecification.%d.ResourceType", n)] == "instance" {
			tags = pairs(form, fmt.Sprintf("TagSpecification.%d.", n), c.now)
		}
	}
	if has, limited := c.Left[typ]; limited && has < most { // fewer than asked for, if the caller takes them
		if has < least {
			f := no("InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).",
				typ, zone)
			f.status = http.StatusInternalServerError
			return "", f
		}
		most = has
	}
	if _, limited := c.Left[typ]; limited {
		c.Left[typ] -= most
	}
	for range most {
		i := &Instance{
			ID: c.name("i"), Type: typ, Zone: zone, Subnet: form["SubnetId"], Image: form["ImageId"], Market: market, UserData: string(data),
			Form: form, Launched: c.now, tags: tags, reservation: res,
		}
		res.instances = append(res.instances, i)
		c.instances = append(c.instances, i)
	}
	c.byToken[token] = res
	return c.reservationXML(res, c.now), nil
}

// running counts the instances of a type that have not ended.
func (c *Cloud) running(typ string) (n int) {
	for _, i := range c.instances {
		if i.Type == typ && i.Ended.IsZero() {
			n++
		}
	}
	return n
}

// reservationXML is a reservation with its instances as they were seen at that time.
func (c *Cloud) reservationXML(r *reservation, at time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<reservationId>%s</reservationId><ownerId>123456789012</ownerId><groupSet/><instancesSet>", r.id)
	for n, i := range r.instances {
		b.WriteString(c.instanceXML(i, n, at))
	}
	b.WriteString("</instancesSet>")
	return b.String()
}

// instanceXML is an instance in the elements that our provider and Amazon's SDK read. Its state is late by Cloud.Delay.
func (c *Cloud) instanceXML(i *Instance, n int, at time.Time) string {
	var b strings.Builder
	state := i.seen(at, c.Delay)
	codes := map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48}
	fmt.Fprintf(&b, "<item><instanceId>%s</instanceId><imageId>%s</imageId><instanceState><code>%d</code><name>%s</name></instanceState>",
		i.ID, i.Image, codes[state], state)
	fmt.Fprintf(&b, "<instanceType>%s</instanceType><amiLaunchIndex>%d</amiLaunchIndex><launchTime>%s</launchTime>", i.Type, n,
		i.Launched.Format("2006-01-02T15:04:05.000Z"))
	fmt.Fprintf(&b, "<placement><availabilityZone>%s</availabilityZone><groupName/><tenancy>default</tenancy></placement>", i.Zone)
	if i.Market == "spot" {
		b.WriteString("<instanceLifecycle>spot</instanceLifecycle>")
	}
	if state == "running" {
		fmt.Fprintf(&b, "<privateIpAddress>%s</privateIpAddress><ipAddress>198.51.100.%d</ipAddress>", c.address(i), n+1)
	}
	b.WriteString("<tagSet>")
	done := map[string]bool{}
	for _, t := range i.tags {
		if value, ok := i.tag(t.key, at); ok && !done[t.key] {
			done[t.key] = true
			fmt.Fprintf(&b, "<item><key>%s</key><value>%s</value></item>", text(t.key), text(value))
		}
	}
	b.WriteString("</tagSet></item>")
	return b.String()
}

// describe lists what was to be seen a moment ago. NextToken is where the page begins.
func (c *Cloud) describe(form map[string]string) (string, *failure) {
	most, err := strconv.Atoi(form["MaxResults"])
	if form["MaxResults"] == "" {
		most, err = c.PageMost, nil
	}
	if err != nil || most < 5 || most > 1000 {
		return "", no("InvalidParameterValue", "Value ( %s ) for parameter maxResults is invalid. Expecting a value from 5 to 1000.",
			form["MaxResults"])
	}
	most = min(most, c.PageMost)
	from, err := strconv.Atoi(form["NextToken"])
	if form["NextToken"] != "" && err != nil {
		return "", no("InvalidNextToken", "The token is invalid.")
	}
	for _, id := range indexed(form, "InstanceId") {
		if c.find(id) == nil {
			return "", no("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
	}
	var b strings.Builder
	b.WriteString("<reservationSet>")
	shown, at := 0, from
	for ; at < len(c.instances) && shown < most; at++ {
		if i := c.instances[at]; c.matches(i, form) {
			shown++
			fmt.Fprintf(&b, "<item><reservationId>%s</reservationId><ownerId>123456789012</ownerId><instancesSet>%s</instancesSet></item>",
				i.reservation.id, c.instanceXML(i, i.index(), c.now.Add(-c.Delay)))
		}
	}
	b.WriteString("</reservationSet>")
	if at < len(c.instances) {
		fmt.Fprintf(&b, "<nextToken>%d</nextToken>", at)
	}
	return b.String(), nil
}

// matches reports whether the instance is seen, and what the filters want.
func (c *Cloud) matches(i *Instance, form map[string]string) bool {
	at := c.now.Add(-c.Delay)
	if i.Launched.After(at) || !i.Ended.IsZero() && at.Sub(i.Ended) > time.Hour {
		return false
	}
	if ids := indexed(form, "InstanceId"); len(ids) > 0 && !slices.Contains(ids, i.ID) {
		return false
	}
	for n := 1; ; n++ {
		name, ok := form[fmt.Sprintf("Filter.%d.Name", n)]
		if !ok {
			return true
		}
		want := indexed(form, fmt.Sprintf("Filter.%d.Value", n))
		value := ""
		switch key, isTag := strings.CutPrefix(name, "tag:"); {
		case isTag:
			value, ok = i.tag(key, at)
		case name == "instance-state-name":
			value = i.seen(at, c.Delay)
		}
		if !ok || !slices.Contains(want, value) {
			return false
		}
	}
}

// terminate is TerminateInstances: one unknown id refuses the whole call.
func (c *Cloud) terminate(form map[string]string) (string, *failure) {
	ids := indexed(form, "InstanceId")
	if len(ids) == 0 {
		return "", no("MissingParameter", "The request must contain the parameter InstanceId")
	}
	for _, id := range ids {
		if c.find(id) == nil {
			return "", no("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
	}
	out := "<instancesSet>"
	for _, id := range ids {
		i := c.find(id)
		if i.Ended.IsZero() {
			i.Ended = c.now
		}
		out += "<item><instanceId>" + id + "</instanceId><currentState><code>32</code><name>shutting-down</name></currentState>" +
			"<previousState><code>16</code><name>running</name></previousState></item>"
	}
	return out + "</instancesSet>", nil
}

// createTags is CreateTags. EC2 has limits of 128 and 256 characters.
func (c *Cloud) createTags(form map[string]string) (string, *failure) {
	for _, id := range indexed(form, "ResourceId") {
		i := c.find(id)
		if i == nil {
			return "", no("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		for _, t := range pairs(form, "", c.now) {
			if len(t.key) > 128 || len(t.value) > 256 {
				return "", no("InvalidParameterValue", "Tag is too long")
			}
			i.tags = append(slices.Clone(i.tags), t)
		}
	}
	return "<return>true</return>", nil
}

// console is GetConsoleOutput, whose text is base64 with a line feed at its end.
func (c *Cloud) console(form map[string]string) (string, *failure) {
	i := c.find(form["InstanceId"])
	if i == nil {
		return "", no("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", form["InstanceId"])
	}
	out := base64.StdEncoding.EncodeToString([]byte("console of " + i.ID + "\n" + c.Console))
	return fmt.Sprintf("<instanceId>%s</instanceId><timestamp>%s</timestamp><output>%s\n</output>", i.ID, c.now.Format(time.RFC3339), out), nil
}
