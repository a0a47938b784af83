package version

// Version is set by the build (-ldflags -X).
var Version = "dev"

// Nomad is the version of Nomad's API that we speak; clients look at it to know what they may ask for.
const Nomad = "2.0.6"
