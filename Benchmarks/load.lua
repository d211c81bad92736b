-- For wrk. WORK=validate|feed|update. TOKENS is a file with lines "userId eventId accessToken", used in turn.
local work, requests, i = os.getenv("WORK") or "validate", {}, 0
-- Each update must change something, in each run: sending the same title again is not an update.
local placeholder, titles = "0000000000000", os.time() * 1000
local threads = 0

-- Each of wrk's threads has its own state.
function setup(thread)
  threads = threads + 1
  thread:set("firstTitle", threads * 100000000)
end

function init()
  local n = 0
  for line in io.lines(os.getenv("TOKENS")) do
    local user, event, token = line:match("(%S+) (%S+) (%S+)")
    local headers = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
    n = n + 1
    if work == "validate" then
      local t = os.date("!%Y-%m-%dT%H:00:00Z", os.time() - n % 200 * 3600)
      requests[n] = wrk.format("POST", "/api/v1/cache/validate/" .. user, headers,
        string.format('{"friends":"%s","events":"%s","friendRequests":"%s","invitations":"%s"}', t, t, t, t))
    elseif work == "feed" then
      requests[n] = wrk.format("GET", "/api/v1/events?limit=20", headers, nil)
    else
      requests[n] = wrk.format("PATCH", "/api/v1/events/" .. event, headers, string.format('{"title":"New title %s"}', placeholder))
    end
  end
  titles = titles + firstTitle
  i = math.random(1, #requests)
end

function request()
  i = i % #requests + 1
  if work ~= "update" then return requests[i] end
  titles = titles + 1
  return (requests[i]:gsub(placeholder, string.format("%d", titles), 1))
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format("%.0f req/s  p50 %.2f ms  p99 %.2f ms  bad-status %d  socket-errors %d\n",
    summary.requests / (summary.duration / 1e6), latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    e.status, e.connect + e.read + e.write + e.timeout))
end
