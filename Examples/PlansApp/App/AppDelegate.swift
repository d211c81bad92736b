import Foundation
import MusterKit
import UIKit
import UserNotifications

/// Makes the client, and receives the token for pushes from iOS.
final class AppDelegate: NSObject, UIApplicationDelegate {
  private(set) lazy var account = makeAccount()

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

  private func makeAccount() -> Account {
    let text = Bundle.main.object(forInfoDictionaryKey: "MusterServer") as? String
    guard let server = text.flatMap(URL.init(string:)) else { fatalError("Info.plist has no URL as MusterServer.") }
    let folder = URL.applicationSupportDirectory.appending(path: "Muster")
    try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let tokens = KeychainTokenStore(service: "PlansApp", lockFolder: folder)
    return Account(client: MusterClient(baseURL: server, tokens: tokens), folder: folder)
  }
}
