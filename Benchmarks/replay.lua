-- For wrk. REQUESTS is a file with lines "method path token body", separated by tabs. Each request is sent once, unless
-- REPEAT is set.
local requests, i = {}, 0

function init()
  for line in io.lines(os.getenv("REQUESTS")) do
    local method, path, token, body = line:match("([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)")
    local headers = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
    requests[#requests + 1] = wrk.format(method, path, headers, body ~= "" and body or nil)
  end
end

function request()
  i = i + 1
  if i > #requests and os.getenv("REPEAT") then i = 1 end
  if i > #requests then
    io.stderr:write("too few requests for this time\n")
    os.exit(1)
  end
  return requests[i]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format("%.0f req/s  p50 %.2f ms  p99 %.2f ms  bad-status %d  socket-errors %d\n",
    summary.requests / (summary.duration / 1e6), latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    e.status, e.connect + e.read + e.write + e.timeout))
end
