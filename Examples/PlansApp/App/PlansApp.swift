import SwiftUI

@main
struct PlansApp: App {
  @UIApplicationDelegateAdaptor(AppDelegate.self) private var delegate

  var body: some Scene {
    WindowGroup {
      RootView(account: delegate.account) { await delegate.askForPushes() }
    }
  }
}
