import Foundation
import MusterKit

#if canImport(AppIntents)
  import AppIntents
#endif
#if canImport(BackgroundTasks)
  import BackgroundTasks
#endif
#if canImport(SwiftUI)
  import SwiftUI
#endif
#if canImport(UIKit)
  import UIKit
#endif
#if canImport(UserNotifications)
  import UserNotifications
#endif
#if canImport(WidgetKit)
  import WidgetKit
#endif

// The code of docs/ios.md that is not in PlansApp. What stands outside of `#if` is compiled here, and
// `AppleSnippetTests` runs it. The rest is only parsed.

#if canImport(Security)
  // snippet
  /// In the targets of the app and of all its extensions.
  enum Plans {
    static let group = "group.com.example.plans"
    static let folder = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)

    /// Nil if the target lacks the capability App Groups.
    static func client() -> MusterClient? {
      guard let folder, let server = URL(string: "https://plans.example.com") else { return nil }
      let tokens = KeychainTokenStore(service: "plans", accessGroup: group, lockFolder: folder)
      return MusterClient(baseURL: server, tokens: tokens)
    }
  }
// end
#endif

// snippet
@MainActor func nextPlan(_ client: MusterClient, in folder: URL) async throws -> Event? {
  let store = try MusterStore(client: client, folder: folder)
  await store.load()
  return store.events.items.first { $0.myStatus == .going && $0.status == .scheduled && $0.startTime > .now }
}
// end

// snippet
@MainActor func answer(
  _ answer: Answer, to event: Event.ID, _ client: MusterClient, in folder: URL
) async throws -> Bool {
  let store = try MusterStore(client: client, folder: folder)
  try await store.perform(.answer(answer, to: event))
  // Without a network, the answer waits, and the app or the next extension sends it.
  try? await store.refresh()
  return !store.outbox.isPending(event)
}
// end

// snippet
/// - Returns: whether the lists are right now.
@MainActor func refreshInBackground(_ client: MusterClient, in folder: URL) async -> Bool {
  guard let store = try? MusterStore(client: client, folder: folder) else { return false }
  return (try? await store.refresh()) != nil
}
// end

// snippet
/// - Parameters:
///   - userInfo: of the push.
///   - format: the app's sentence for a key, such as `%1$@ invited you to “%2$@”.`
/// - Returns: nil if the app lacks the sentence: show the push as it is.
func sentence(of userInfo: [AnyHashable: Any], format: (String) -> String?) -> String? {
  guard let key = userInfo["loc-key"] as? String, let words = userInfo["loc-args"] as? [String] else { return nil }
  return format(key)?.replacing(/%(\d+)\$@/) { match in
    Int(match.1).flatMap { words.indices.contains($0 - 1) ? words[$0 - 1] : nil } ?? ""
  }
}
// end

#if canImport(WidgetKit)
  // snippet
  struct NextPlan: TimelineEntry {
    let date = Date.now
    var event: Event?
  }

  struct NextPlanConfiguration: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Next plan"
  }

  struct NextPlanProvider: AppIntentTimelineProvider {
    func placeholder(in context: Context) -> NextPlan { NextPlan() }

    func snapshot(for configuration: NextPlanConfiguration, in context: Context) async -> NextPlan {
      guard let client = Plans.client(), let folder = Plans.folder else { return NextPlan() }
      return NextPlan(event: try? await nextPlan(client, in: folder))
    }

    func timeline(for configuration: NextPlanConfiguration, in context: Context) async -> Timeline<NextPlan> {
      let plan = await snapshot(for: configuration, in: context)
      return Timeline(entries: [plan], policy: .after(plan.event?.startTime ?? .now.addingTimeInterval(3600)))
    }
  }

  struct NextPlanWidget: Widget {
    var body: some WidgetConfiguration {
      AppIntentConfiguration(kind: "NextPlan", intent: NextPlanConfiguration.self, provider: NextPlanProvider()) {
        plan in
        VStack(alignment: .leading) {
          Text(plan.event?.title ?? "No plans")
          if let event = plan.event { Text(event.startTime, style: .relative) }
        }
        .widgetURL(plan.event.flatMap { URL(string: "plans://event/\($0.id)") })
        .containerBackground(.background, for: .widget)
      }
    }
  }
// end
#endif

#if canImport(AppIntents)
  // snippet
  struct AnswerIntent: AppIntent {
    static let title: LocalizedStringResource = "Answer an invitation"

    @Parameter(title: "Event") var event: String
    @Parameter(title: "Going") var isGoing: Bool

    func perform() async throws -> some IntentResult & ProvidesDialog {
      guard let client = Plans.client(), let folder = Plans.folder, let id = Event.ID(event) else {
        return .result(dialog: "Please open the app first.")
      }
      let isSent = try await answer(isGoing ? .going : .declined, to: id, client, in: folder)
      return .result(dialog: isSent ? "Your answer is sent." : "Your answer is sent when there is a network.")
    }
  }
// end
#endif

#if canImport(BackgroundTasks) && canImport(SwiftUI)
  // snippet
  struct PlansApp: App {
    @Environment(\.scenePhase) private var phase

    var body: some Scene {
      WindowGroup { Text("Plans") }
        .onChange(of: phase) { if phase == .background { Self.askForRefresh() } }
        .backgroundTask(.appRefresh("com.example.plans.refresh")) {
          await Self.askForRefresh()
          if let client = Plans.client(), let folder = Plans.folder {
            _ = await refreshInBackground(client, in: folder)
          }
        }
    }

    /// iOS decides when, by how the user uses the app.
    private static func askForRefresh() {
      let request = BGAppRefreshTaskRequest(identifier: "com.example.plans.refresh")
      request.earliestBeginDate = .now.addingTimeInterval(3600)
      try? BGTaskScheduler.shared.submit(request)
    }
  }
// end
#endif

#if canImport(UserNotifications)
  // snippet
  final class NotificationService: UNNotificationServiceExtension {
    override func didReceive(
      _ request: UNNotificationRequest, withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
    ) {
      guard let content = request.content.mutableCopy() as? UNMutableNotificationContent else {
        return contentHandler(request.content)
      }
      let text = sentence(of: content.userInfo) { key in
        let format = Bundle.main.localizedString(forKey: key, value: nil, table: nil)
        return format == key ? nil : format
      }
      content.body = text ?? content.userInfo["message"] as? String ?? content.body
      // iOS hands both to this call alone, so only the task uses them from here on.
      nonisolated(unsafe) let (shown, deliver) = (content, contentHandler)
      Task {
        // The app shows the change immediately when it is opened.
        if let client = Plans.client(), let folder = Plans.folder { _ = await refreshInBackground(client, in: folder) }
        deliver(shown)
      }
    }
  }
// end
#endif

#if canImport(UIKit)
  // snippet
  extension AppDelegate {
    /// A push with `content-available`: a list has changed.
    func application(
      _ application: UIApplication, didReceiveRemoteNotification userInfo: [AnyHashable: Any]
    ) async -> UIBackgroundFetchResult {
      guard let client = Plans.client(), let folder = Plans.folder else { return .noData }
      return await refreshInBackground(client, in: folder) ? .newData : .failed
    }
  }
  // end

  final class AppDelegate: NSObject, UIApplicationDelegate {}
#endif
