package ec2

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fleet/provider"
)

// subject is what a call is about, for errors that say what they are about.
type subject struct {
	group string // quota group of the offering
	what  string // type and zone, for people
}

// meaning is what an error code says.
type meaning struct {
	kind  provider.Kind
	scope provider.Scope
}

// meanings of the API's codes. Whatever is not here is told by its prefix, or by the HTTP status. Sources: Amazon's
// list of EC2 error codes, and what Arvados' and Karpenter's drivers do with them.
var meanings = map[string]meaning{ // a constant
	"InsufficientInstanceCapacity":         {provider.Capacity, provider.ScopeOffering},
	"UnfulfillableCapacity":                {provider.Capacity, provider.ScopeOffering},
	"InsufficientHostCapacity":             {provider.Capacity, provider.ScopeOffering},
	"InsufficientReservedInstanceCapacity": {provider.Capacity, provider.ScopeOffering},
	"InsufficientCapacityOnHost":           {provider.Capacity, provider.ScopeOffering},
	"ReservationCapacityExceeded":          {provider.Capacity, provider.ScopeOffering},
	"InsufficientFreeAddressesInSubnet":    {provider.Capacity, provider.ScopeZone},
	"InsufficientVolumeCapacity":           {provider.Capacity, provider.ScopeZone},
	"SpotMaxPriceTooLow":                   {provider.Capacity, provider.ScopeOffering},
	"InsufficientCapacity":                 {provider.Capacity, provider.ScopeOffering},

	"VcpuLimitExceeded":                {provider.Quota, ""},
	"InstanceLimitExceeded":            {provider.Quota, ""},
	"MaxSpotInstanceCountExceeded":     {provider.Quota, ""},
	"MaxSpotFleetRequestCountExceeded": {provider.Quota, ""},
	"MaxFleetCountExceeded":            {provider.Quota, ""},
	"InsufficientAddressCapacity":      {provider.Quota, ""},
	"AddressLimitExceeded":             {provider.Quota, ""},
	"VolumeLimitExceeded":              {provider.Quota, ""},
	"MaxIOPSLimitExceeded":             {provider.Quota, ""},
	"NetworkInterfaceLimitExceeded":    {provider.Quota, ""},
	"PendingVerification":              {provider.Quota, ""},
	"ResourceLimitExceeded":            {provider.Quota, ""},
	"ConcurrentTagAccess":              {provider.Transient, ""},
	"InsufficientInstanceQuota":        {provider.Quota, ""},

	"RequestLimitExceeded":                   {provider.RateLimited, ""},
	"Throttling":                             {provider.RateLimited, ""},
	"ThrottlingException":                    {provider.RateLimited, ""},
	"ThrottledException":                     {provider.RateLimited, ""},
	"RequestThrottled":                       {provider.RateLimited, ""},
	"RequestThrottledException":              {provider.RateLimited, ""},
	"TooManyRequestsException":               {provider.RateLimited, ""},
	"BandwidthLimitExceeded":                 {provider.RateLimited, ""},
	"SlowDown":                               {provider.RateLimited, ""},
	"PriorRequestNotComplete":                {provider.RateLimited, ""},
	"EC2ThrottledException":                  {provider.RateLimited, ""},
	"ProvisionedThroughputExceededException": {provider.RateLimited, ""},

	"AuthFailure":                 {provider.Auth, ""},
	"UnauthorizedOperation":       {provider.Auth, ""},
	"InvalidClientTokenId":        {provider.Auth, ""},
	"UnrecognizedClientException": {provider.Auth, ""},
	"SignatureDoesNotMatch":       {provider.Auth, ""},
	"IncompleteSignature":         {provider.Auth, ""},
	"MissingAuthenticationToken":  {provider.Auth, ""},
	"InvalidSecurityToken":        {provider.Auth, ""},
	"ExpiredToken":                {provider.Auth, ""},
	"RequestExpired":              {provider.Auth, ""},
	"OptInRequired":               {provider.Auth, ""},
	"Blocked":                     {provider.Auth, ""},
	"AccessDenied":                {provider.Auth, ""},
	"AccessDeniedException":       {provider.Auth, ""},
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": {provider.Auth, ""},

	"InvalidInstanceID.NotFound":  {provider.NotFound, ""},
	"InvalidInstanceID.Malformed": {provider.NotFound, ""},
	"IncorrectInstanceState":      {provider.NotFound, ""}, // of a tag or a terminate: it is going

	"InternalError":        {provider.Ambiguous, ""},
	"InternalFailure":      {provider.Ambiguous, ""},
	"ServiceUnavailable":   {provider.Ambiguous, ""},
	"Unavailable":          {provider.Ambiguous, ""},
	"Server.InternalError": {provider.Ambiguous, ""},

	"IdempotentInstanceTerminated": {provider.NotFound, ""}, // the intent's machine was there
	// The intent was used before, with other parameters: by the leader before, whose configuration says something else, or
	// who knew other servers. Its machine is there, or comes: lists tell.
	"IdempotentParameterMismatch": {provider.Ambiguous, ""},
}

// config are prefixes of codes that say that the request can't work as it is.
var config = []string{ // a constant
	"Invalid", "Missing", "Unsupported", "UnknownParameter", "UnknownPrincipalType", "Malformed", "Unknown", "Validation",
	"OperationNotPermitted",
	"TagLimitExceeded", "TagPolicyViolation", "Dependency", "DryRun", "NoSuchVersion", "NotExportable", "Encrypted",
}

// classify gives an error its meaning.
func classify(ctx context.Context, err error, about subject) *provider.Error {
	e := &provider.Error{Kind: provider.Ambiguous, Message: err.Error()}
	var api *apiError
	var not unsent
	var own *provider.Error
	switch {
	case errors.As(err, &own):
		return own
	case ctx.Err() != nil:
		e.Message = context.Cause(ctx).Error()
		return e
	case errors.As(err, &not):
		e.Kind = provider.Transient
		return e
	case !errors.As(err, &api):
		return e
	}
	m, known := meanings[api.Code]
	switch {
	case known:
		e.Kind, e.Scope = m.kind, m.scope
	case prefixed(api.Code, config):
		e.Kind = provider.Config
	case strings.HasSuffix(api.Code, "LimitExceeded"):
		e.Kind = provider.Quota
	case api.Status == 429 || api.Status == 503 && api.RetryAfter > 0:
		e.Kind = provider.RateLimited
	case api.Status == 401 || api.Status == 403:
		e.Kind = provider.Auth
	case api.Status >= 500:
		e.Kind = provider.Ambiguous
	case api.Status == 400:
		e.Kind = provider.Config
	}
	if e.Kind == provider.Quota {
		e.Group = about.group
	}
	// Amazon says "Unsupported" of a type that a zone does not have, which is for long, but of this offering only.
	if api.Code == "Unsupported" && about.what != "" {
		e.Kind, e.Scope = provider.Capacity, provider.ScopeOffering
	}
	if about.what != "" {
		e.Message = about.what + ": " + e.Message
	}
	return e
}

// prefixed reports whether the error code begins with one of the list: Amazon has families such as InvalidInstanceID.
func prefixed(code string, list []string) bool {
	for _, p := range list {
		if strings.HasPrefix(code, p) {
			return true
		}
	}
	return false
}

// backoffs know how long to wait after a call was throttled, by kind: each time longer, until one is not.
type backoffs struct {
	mu   sync.Mutex
	wait map[provider.Call]time.Duration // guarded by mu
}

// next is how long to wait after one more refusal of this kind of call: longer each time, up to a minute.
func (b *backoffs) next(kind provider.Call) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wait == nil {
		b.wait = map[provider.Call]time.Duration{}
	}
	b.wait[kind] = min(b.wait[kind]*3/2+time.Second, time.Minute)
	return b.wait[kind]
}

// clean ends the waiting after a call that was accepted.
func (b *backoffs) clean(kind provider.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.wait, kind)
}
