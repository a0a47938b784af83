package policy

// given returns what policy and capabilities of a rule say together.
func given[C ~uint8](r *reader, settings map[string]item, coarse func(string) (Set[C], bool), words names[C]) (set Set[C]) {
	if i, ok := settings["policy"]; ok {
		s, known := coarse(i.value.text)
		switch {
		case i.value.kind != text:
			r.addf(i.value.at, "policy is a text in quotes, got %s", i.value.text)
		case !known:
			r.addf(i.value.at, "no such policy here: %q", i.value.text)
		default:
			set = set.With(s)
		}
	}
	i, ok := settings["capabilities"]
	if !ok {
		return set
	}
	if i.value.kind != list {
		r.addf(i.value.at, "capabilities is a list of texts such as [\"read-job\"]")
	}
	for _, w := range i.value.list {
		c, known := words.find(w.text)
		switch {
		case w.kind != text:
			r.addf(w.at, "each of the capabilities is a text in quotes, got %s", w.text)
		case w.text == "deny":
			set = set.With(Denied[C]())
		case known:
			set = set.With(Of(c))
		default:
			r.addf(w.at, "no such capability here: %q%s", w.text, suggestion(w.text, words))
		}
	}
	return set
}

// said refuses a rule that gives nothing and takes nothing away, unless more is wrong with the policy.
func (r *reader) said(anything bool, of string, label item) {
	if !anything && len(r.problems) == 0 {
		r.addf(label.at, "the %s rule says nothing: give it policy or capabilities", of)
	}
}

// nodePool reads a rule of node pools.
func (r *reader) nodePool(label item, body value) {
	set := given(r, r.settings("node_pool", body, "policy", "capabilities"), poolPolicy, poolNames)
	r.said(set != 0, "node_pool", label)
	key := glob(label.key)
	r.rules.NodePools[key] = r.rules.NodePools[key].With(completePool(set))
}

// hostVolume reads a rule of host volumes.
func (r *reader) hostVolume(label item, body value) {
	set := given(r, r.settings("host_volume", body, "policy", "capabilities"), volumePolicy, volumeNames)
	r.said(set != 0, "host_volume", label)
	key := glob(label.key)
	r.rules.HostVolumes[key] = r.rules.HostVolumes[key].With(completeVolume(set))
}

// namespace reads a rule of namespaces.
func (r *reader) namespace(label item, body value) {
	settings := r.settings("namespace", body, "policy", "capabilities", "variables")
	set := given(r, settings, namespacePolicy, capabilityNames)
	key := glob(label.key)
	ns := r.rules.Namespaces[key]
	ns.Capabilities = ns.Capabilities.With(complete(set))
	variables, ok := settings["variables"]
	if ok {
		r.variables(variables, &ns)
	}
	r.said(set != 0 || ok, "namespace", label)
	r.rules.Namespaces[key] = ns
}

// variables reads the rules of paths.
func (r *reader) variables(i item, ns *Namespace) {
	count := 0
	for _, body := range r.objects(i) {
		for _, p := range body.items {
			if p.key != "path" {
				r.addf(p.at, "unknown key %q in a variables block: write path \"…\" { capabilities = [\"read\"] }", p.key)
				continue
			}
			for _, o := range r.objects(p) {
				for _, label := range o.items {
					count++
					r.path(label, ns)
				}
			}
		}
	}
	if count == 0 && len(r.problems) == 0 {
		r.addf(i.at, "the variables block has no path: write path \"*\" { capabilities = [\"read\"] }")
	}
}

// path reads the rule of one path.
func (r *reader) path(label item, ns *Namespace) {
	r.counted(label.at)
	switch {
	case label.key == "" || len(label.key) > 256:
		r.addf(label.at, "a path has 1 to 256 bytes")
	case label.key[0] == '/':
		r.addf(label.at, "invalid variable path %q: it cannot begin with '/'", label.key)
	}
	none := func(string) (Set[VariableCapability], bool) { return 0, false }
	for _, body := range r.objects(label) {
		set := given(r, r.settings("path", body, "capabilities"), none, variableNames)
		r.said(set != 0, "path", label)
		if ns.Variables == nil {
			ns.Variables = map[string]Set[VariableCapability]{}
		}
		key := glob(label.key)
		ns.Variables[key] = ns.Variables[key].With(completeVariables(set))
	}
}

// part reads the rule of a part of the cluster.
func (r *reader) part(i item, part Part) {
	keys := []string{"policy"}
	if part == Operator {
		keys = append(keys, "capabilities")
	}
	level := None
	coarse := func(word string) (Set[OperatorCapability], bool) {
		l, known := levelNames.find(word)
		if !known || l == None || l == List && part != Plugin {
			return 0, false
		}
		level = max(level, l)
		return 0, true
	}
	var set Set[OperatorCapability]
	for _, body := range r.objects(i) {
		set = set.With(given(r, r.settings(i.key, body, keys...), coarse, operatorNames))
	}
	if set.Denies() {
		level = Deny
	}
	r.said(set != 0 || level != None, i.key, i)
	r.rules.Parts[part] = level
	switch {
	case part == Fleet:
		r.fleetDefined = true
	case part == Operator && level == Deny:
		r.rules.Operator = Denied[OperatorCapability]()
	case part == Operator && level >= Read:
		r.rules.Operator = set.With(Of(LicenseRead))
	case part == Operator:
		r.rules.Operator = set
	}
}
