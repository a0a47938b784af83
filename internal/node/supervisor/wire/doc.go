// Package wire is what the agent and drover-init say to each other over a unix stream socket: frames with a fixed
// header, multiplexed into channels, each channel one request.
//
//	header: payload length (u32) | kind (u8) | stream (u8) | descriptors (u8) | 0 | channel (u32), little endian
//
// The agent opens a channel with KindOpen (an Op and its request); the supervisor answers with KindReply or
// KindError, and for streaming ops with KindStarted, KindData and KindExit or KindEnd. Data carries the absolute
// offset of its first byte. The receiver of data sends KindAck with the absolute offset that it has consumed. This is
// the acknowledgement, and the credit too: a sender never has more than Window bytes unacknowledged.
//
// Messages only ever grow at their end. A decoder takes missing fields as zero and ignores what it does not know, so
// that an older supervisor works with a newer agent. The hello tells the versions.
//
// What an operation does is package guest/server's. It starts no goroutines.
package wire
