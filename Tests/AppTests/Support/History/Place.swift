import Synchronization
import TestSupport

@testable import App

/// The address of the service. It changes when the service's process is killed and started again.
final class Place: Sendable {
  private let app: Mutex<TestApp>

  init(_ app: TestApp) {
    self.app = Mutex(app)
  }

  func move(to next: TestApp) {
    app.withLock { $0 = next }
  }

  /// A user's phone that sends its requests to the current address.
  func phone(of person: Phone) -> Phone {
    Phone(app.withLock { $0 }, person.username, id: person.userID, accessToken: person.accessToken)
  }

  /// Repeats a request while there is no service, or only server errors.
  func insist(_ owner: Phone, _ ask: (Phone) async throws -> APIResponse) async throws -> APIResponse {
    let deadline = ContinuousClock.now + .seconds(30)
    while true {
      if let response = try? await ask(phone(of: owner)), response.status < 500 {
        guard response.status == 200 || response.status == 304 else {
          throw Unexpected("\(response.status): \(response.body)")
        }
        return response
      }
      guard ContinuousClock.now < deadline else { throw Unexpected("no service responds to \(owner.username)") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}
