import Foundation
import Testing

@testable import MusterKit

@Suite struct RetryPolicyTests {
  private static func problem(_ type: Problem.Slug, _ status: Int, retryAfter: Int? = nil) -> Outcome {
    Outcome(.problem(type, status: status, retryAfter: retryAfter))
  }

  private func policy(random: Double = 1) -> RetryPolicy { RetryPolicy(maximumAttempts: 10, random: { random }) }

  @Test func `waits are random, up to a limit that doubles and ends`() {
    let limits = (1...8).map { policy().delay(after: .lost(""), attempts: $0, elapsed: 0, .always) }
    #expect(limits == [0.25, 0.5, 1, 2, 4, 8, 8, 8])
    #expect(policy(random: 0.5).delay(after: .lost(""), attempts: 3, elapsed: 0, .always) == 0.5)
    #expect(policy(random: 0).delay(after: .lost(""), attempts: 3, elapsed: 0, .always) == 0)
  }

  @Test func `a wait that the service asks for is obeyed, unless it is too long`() {
    let wait = { Self.problem(.databaseUnavailable, 503, retryAfter: $0) }
    #expect(policy(random: 0).delay(after: wait(3), attempts: 1, elapsed: 0, .always) == 3)
    #expect(policy(random: 1).delay(after: wait(10), attempts: 1, elapsed: 0, .always) == 11)
    #expect(policy().delay(after: wait(11), attempts: 1, elapsed: 0, .always) == nil)
  }

  @Test func `attempts and time have an end`() {
    #expect(policy().delay(after: .lost(""), attempts: 10, elapsed: 0, .always) == nil)
    #expect(policy().delay(after: .lost(""), attempts: 1, elapsed: 44.75, .always) == 0.25)
    #expect(policy().delay(after: .lost(""), attempts: 1, elapsed: 44.8, .always) == nil)
    #expect(RetryPolicy.never.delay(after: .lost(""), attempts: 1, elapsed: 0, .always) == nil)
  }

  /// The repeats of each kind of call.
  private static let repeats: [(outcome: Outcome, always: Bool, ifNothingHappened: Bool)] = [
    (.lost(""), true, false),
    (.unsent(""), true, true),
    (Outcome(.html(status: 502)), true, false),
    (Outcome(.html(status: 503)), true, false),
    (Outcome(.html(status: 504)), true, false),
    (Outcome(.html(status: 500)), false, false),
    (Outcome(.html(status: 404)), false, false),
    (Outcome(.html(status: 200)), false, false),
    (problem(.requestTimeout, 408), true, true),
    (problem(.requestRunning, 409), true, false),
    (problem(.exportRunning, 409), false, false),
    (problem(.alreadyFriends, 409), false, false),
    (problem(.rateLimited, 429), true, true),
    (problem(.uploadInProgress, 429), true, true),
    (problem("something-new", 429), true, true),
    (problem(.tooManyAttempts, 429), false, false),
    (problem(.tooManyFriendRequests, 429), false, false),
    (problem(.busy, 503), true, true),
    (problem(.databaseUnavailable, 503), true, true),
    (problem(.stopping, 503), true, true),
    (problem(.unknownOutcome, 503), true, false),
    (problem("something-new", 503), true, false),
    (problem(.internalError, 500), false, false),
    (problem(.malformedBody, 400), false, false),
    (problem(.tokenExpired, 401), false, false),
    (problem(.eventNotFound, 404), false, false),
    (problem(.lostUpdate, 412), false, false),
    (problem(.invalidFields, 422), false, false),
  ]

  @Test func `only safe calls are repeated`() {
    for (outcome, always, ifNothingHappened) in Self.repeats {
      #expect(outcome.allowsRepeat(.always) == always, "\(outcome)")
      #expect(outcome.allowsRepeat(.ifNothingHappened) == ifNothingHappened, "\(outcome)")
      #expect(!outcome.allowsRepeat(.never), "\(outcome)")
    }
  }
}
