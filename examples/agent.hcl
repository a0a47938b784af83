# An agent that keeps its data, is reached by others, and keeps runners warm: drover agent -config agent.hcl
# All keys: docs/reference/configuration.md
data_dir  = "/var/lib/drover"
bind_addr = "0.0.0.0"
api_token = "change-me"

server {
  enabled = true
}

client {
  enabled    = true
  node_class = "small"
  meta {
    rack = "a1"
  }
  reserved {
    cpu    = 500  # MHz
    memory = 1024 # MB
  }
  egress {
    allow = ["10.1.0.0/16"]
  }
}

exec {
  prewarming_pool_threshold = 0.5
  environment "python" {
    image     = "docker.io/library/python:3.13-slim"
    pool_size = 10
    memory    = 128
  }
}

tls {
  http      = true
  rpc       = true
  ca_file   = "/etc/drover/ca.pem"
  cert_file = "/etc/drover/agent.pem"
  key_file  = "/etc/drover/agent-key.pem"
}

telemetry {
  publish_node_metrics = true
}
