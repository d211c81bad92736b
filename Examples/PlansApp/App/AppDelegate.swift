import Foundation
import MusterKit
import UIKit
import UserNotifications

/// The events that iOS delivers without a view: the token for pushes, taps on them, and the first unlock.
final class AppDelegate: NSObject, UIApplicationDelegate, UNUserNotificationCenterDelegate {
  private(set) lazy var account = makeAccount()

  func application(
    _ application: UIApplication, didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]? = nil
  ) -> Bool {
    UNUserNotificationCenter.current().delegate = self
    return true
  }

  /// iOS asks the user once. It hands over the token at every launch.
  func askForPushes() async {
    let isAllowed = try? await UNUserNotificationCenter.current().requestAuthorization(options: [.alert, .badge])
    if isAllowed == true { UIApplication.shared.registerForRemoteNotifications() }
  }

  func application(
    _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data
  ) {
    Task { await account.push.register(deviceToken) }
  }

  func applicationProtectedDataDidBecomeAvailable(_ application: UIApplication) { Task { await account.open() } }

  nonisolated func userNotificationCenter(
    _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
    withCompletionHandler completionHandler: @escaping () -> Void
  ) {
    let tap = PushTap(userInfo: response.notification.request.content.userInfo)
    Task { @MainActor in await account.router.open(tap, in: account.home) }
    completionHandler()
  }

  private func makeAccount() -> Account {
    let text = Bundle.main.object(forInfoDictionaryKey: "MusterServer") as? String
    guard let server = text.flatMap(URL.init(string:)) else { fatalError("Info.plist has no URL as MusterServer.") }
    let folder = URL.applicationSupportDirectory.appending(path: "Muster")
    let tokens = KeychainTokenStore(service: "PlansApp", lockFolder: folder)
    return Account(client: MusterClient(baseURL: server, tokens: tokens), folder: folder)
  }
}
