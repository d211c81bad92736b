#if DEBUG
  import MusterKit
  import SwiftUI

  // They show the demo from the folder `MusterPreview`, without a service: see the README.

  #Preview("Lists") { RootView(account: .preview()) }

  #Preview("Slow") { RootView(account: .preview(latency: 3)) }

  #Preview("Offline") { RootView(account: .preview(failures: .offline)) }

  #Preview("Login") { RootView(account: .preview(isLoggedIn: false)) }

  extension Account {
    fileprivate static func preview(
      latency: TimeInterval = 0, failures: PreviewFailures = .none, isLoggedIn: Bool = true
    ) -> Account {
      let client = PreviewClient.make(latency: latency, failures: failures, isLoggedIn: isLoggedIn)
      return Account(client: client, folder: .temporaryDirectory.appending(path: UUID().uuidString))
    }
  }
#endif
