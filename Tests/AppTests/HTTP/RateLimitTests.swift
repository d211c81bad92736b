import Postgres
import Testing

@testable import App

@Suite struct RateLimitTests {
  @Test(arguments: RateLimit.allCases) func `a bucket allows its burst at once, and then its rate`(_ limit: RateLimit) {
    let limits = RateLimits(isOn: true)
    let start = ContinuousClock.now
    let subject = RateLimits.Subject.user(.new())
    for left in (0..<limit.burst).reversed() {
      let state = limits.take(limit, of: subject, at: start)
      #expect(state?.wait == nil && state?.remaining == left)
    }
    let refused = limits.take(limit, of: subject, at: start)
    #expect(refused?.remaining == 0 && refused?.reset == limit.window)
    let wait = refused?.wait ?? 0
    #expect(wait == max(1, (limit.window + limit.burst - 1) / limit.burst))
    // Refused requests cost nothing.
    #expect(limits.take(limit, of: subject, at: start + .seconds(wait))?.wait == nil)
    // A bucket never holds more than its burst.
    let later = limits.take(limit, of: subject, at: start + .seconds(10 * limit.window))
    #expect(later?.remaining == limit.burst - 1)
    // Others have buckets of their own.
    for other in [RateLimits.Subject.user(.new()), .session(.new()), .address("192.0.2.1")] {
      #expect(limits.take(limit, of: other, at: start)?.remaining == limit.burst - 1)
    }
  }

  @Test func `several requests count together or not at all, and wait for all that lack`() {
    let limits = RateLimits(isOn: true)
    let start = ContinuousClock.now
    let subject = RateLimits.Subject.user(.new())
    #expect(limits.take(.reads, count: 90, of: subject, at: start)?.remaining == 10)
    // Twenty-five lack, and twenty come in a second.
    let refused = limits.take(.reads, count: 35, of: subject, at: start)
    #expect(refused?.remaining == 10 && refused?.wait == 2)
    #expect(limits.take(.reads, count: 35, of: subject, at: start + .seconds(1))?.wait == 1)
    let allowed = limits.take(.reads, count: 35, of: subject, at: start + .seconds(2))
    #expect(allowed?.wait == nil && allowed?.remaining == 15)
  }

  @Test(arguments: RateLimit.allCases, [1, 2, 3, 8, 1000])
  func `processes together allow the limit, and each allows at least one request`(_ limit: RateLimit, processes: Int) {
    let all = (0..<processes).map { _ in RateLimits(isOn: true, processes: processes) }
    let start = ContinuousClock.now
    let subject = RateLimits.Subject.user(.new())
    var allowed = 0
    for limits in all {
      while limits.take(limit, of: subject, at: start)?.wait == nil { allowed += 1 }
      let refused = limits.take(limit, of: subject, at: start)
      #expect(refused?.reset == limit.window)
      let share = (limit.burst + processes - 1) / processes
      #expect(refused?.headers.policy.hasSuffix(";q=\(share);w=\(limit.window)") == true)
    }
    #expect(allowed >= limit.burst && allowed < limit.burst + processes)
    // In the window, as much comes back as was taken.
    for limits in all {
      while limits.take(limit, of: subject, at: start + .seconds(limit.window))?.wait == nil { allowed -= 1 }
    }
    #expect(allowed == 0)
  }

  @Test func `requests that count together are allowed by a full bucket, however small the share`() {
    let limits = RateLimits(isOn: true, processes: 50)
    let start = ContinuousClock.now
    let subject = RateLimits.Subject.user(.new())
    #expect(limits.take(.reads, count: 5, of: subject, at: start)?.remaining == 0)
    #expect(limits.take(.reads, count: 5, of: subject, at: start)?.wait == 5)
    #expect(limits.take(.reads, count: 5, of: subject, at: start + .seconds(5))?.wait == nil)
  }

  @Test func `the number of buckets is bounded`() {
    let limits = RateLimits(isOn: true)
    let start = ContinuousClock.now
    for number in 0..<250_000 {
      // Most buckets are full again when room is needed.
      let time = start + .milliseconds(number)
      #expect(limits.take(.writes, of: .address("\(number)"), at: time)?.wait == nil)
    }
    #expect(limits.count <= 100_000)
    #expect(RateLimits(isOn: false).take(.writes, of: .address("x")) == nil)
  }

  @Test func `each user has limits of their own, and each response states the remaining requests`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let first = try await ana.send("GET", "users/me")
      #expect(first.header("RateLimit") == #""reads";r=99;t=1"#)
      #expect(first.header("RateLimit-Policy") == #""reads";q=100;w=5"#)
      // Errors count and carry the headers too.
      let missing = try await ana.send("GET", "users/\(User.ID.new())")
      #expect(missing.status == 404 && missing.header("RateLimit")?.hasPrefix(#""reads";r=9"#) == true)
      let refused = try await until429 { try await ana.send("POST", "cache/validate/\(ana.id)") }
      #expect(refused.problem == "rate-limited" && refused.header("Retry-After") == "1")
      #expect(refused.header("RateLimit")?.hasPrefix(#""reads";r=0;t="#) == true)
      // Other kinds of requests, other users and health checks are not affected.
      #expect(
        try await ana.send("PATCH", "users/me", #"{"bio": "Climbs"}"#).header("RateLimit") == #""writes";r=29;t=1"#)
      #expect(try await ana.send("GET", "users?query=ben").header("RateLimit") == #""search";r=19;t=1"#)
      #expect(try await ana.send("GET", "users/me/export").header("RateLimit") == #""exports";r=3;t=900"#)
      #expect(try await ben.send("GET", "users/me").header("RateLimit") == #""reads";r=99;t=1"#)
      #expect(try await app.send("GET", "/health/live").header("RateLimit") == nil)
      let refreshed = try await ana.refresh()
      #expect(refreshed.header("RateLimit") == #""refreshes";r=9;t=1"#)
    }
  }

  @Test func `blocks have a limit of their own, with and without keys`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      let ana = try await app.signUp("ana")
      let others = (0..<51).map { _ in User.ID.new() }
      let refused = try await until429 { try await ana.send("PATCH", "users/me", #"{"bio": "Climbs"}"#) }
      #expect(refused.problem == "rate-limited")
      for (number, other) in others.enumerated() {
        let key = number.isMultiple(of: 2) ? [("Idempotency-Key", other.description)] : []
        let response = try await ana.send("PUT", "blocks/\(other)", headers: key)
        #expect(response.status == 204, "\(response.body)")
        let limit = key.isEmpty ? "blocks" : "repeatable-blocks"
        #expect(response.header("RateLimit-Policy")?.hasPrefix("\"\(limit)\";q=") == true)
      }
      for other in others { #expect(try await ana.send("DELETE", "blocks/\(other)").status == 204) }
      // Nor do blocks use up the writes of others.
      let ben = try await app.signUp("ben")
      #expect(try await ben.send("PUT", "blocks/\(ana.id)").header("RateLimit")?.hasPrefix(#""blocks";r=199;"#) == true)
      #expect(try await ben.send("PATCH", "users/me", "{}").header("RateLimit") == #""writes";r=29;t=1"#)
    }
  }

  @Test func `registrations count per address`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on", "MUSTER_THROTTLING": "off"]) { app in
      for number in 0..<60 { _ = try await app.signUp("user\(number)") }
      let body = #"{"username": "ana", "email": "ana@example.com", "password": "correct horse"}"#
      let refused = try await app.send("POST", "auth/register", body: body)
      #expect(refused.status == 429 && refused.problem == "rate-limited", "\(refused.body)")
      try await app.takeMails()
    }
  }

  private func until429(_ send: () async throws -> APIResponse) async throws -> APIResponse {
    for _ in 0..<500 {
      let response = try await send()
      if response.status == 429 { return response }
    }
    return try await send()
  }
}
