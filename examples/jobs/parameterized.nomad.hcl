# A job that each dispatch runs once, with a payload: echo text | drover job dispatch count -
job "count" {
  type = "batch"

  parameterized {
    payload       = "required"
    meta_optional = ["unit"]
  }

  group "count" {
    task "count" {
      driver = "sandbox"
      dispatch_payload {
        file = "input.txt"
      }
      config {
        image   = "host"
        command = "/bin/sh"
        args    = ["-c", "wc $${NOMAD_META_unit:--w} < local/input.txt"]
      }
    }
  }
}
