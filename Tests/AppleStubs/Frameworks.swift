import Foundation

// The other frameworks: see SwiftUI.swift.

// MARK: UIKit and UserNotifications

@MainActor @preconcurrency public protocol UIApplicationDelegate {}

@MainActor public final class UIApplication {
  public struct LaunchOptionsKey: Hashable, Sendable {}
  public static let shared = UIApplication()
  public func registerForRemoteNotifications() {}
}

@MainActor public final class UIDevice {
  public static let current = UIDevice()
  public var name: String { stub() }
}

public enum UIBackgroundFetchResult { case newData, noData, failed }

public protocol UNUserNotificationCenterDelegate: AnyObject {
  func userNotificationCenter(
    _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
    withCompletionHandler completionHandler: @escaping () -> Void)
}

public struct UNAuthorizationOptions: OptionSet, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }
  public static let alert = UNAuthorizationOptions(rawValue: 1), badge = UNAuthorizationOptions(rawValue: 2)
}

// Apple's class may be used from any thread. This declaration has no state that is ever used.
public final class UNUserNotificationCenter: @unchecked Sendable {
  public static func current() -> UNUserNotificationCenter { stub() }
  public weak var delegate: (any UNUserNotificationCenterDelegate)?
  public func requestAuthorization(options: UNAuthorizationOptions) async throws -> Bool { stub() }
}

// Not `Sendable`, as in Apple's framework.
public class UNNotificationResponse { public var notification: UNNotification { stub() } }
public class UNNotification { public var request: UNNotificationRequest { stub() } }
public class UNNotificationRequest { public var content: UNNotificationContent { stub() } }
public class UNNotificationContent {
  public var userInfo: [AnyHashable: Any] { stub() }
  public func mutableCopy() -> Any { stub() }
}
public class UNMutableNotificationContent: UNNotificationContent { public var body = "" }

open class UNNotificationServiceExtension {
  public init() {}
  open func didReceive(
    _ request: UNNotificationRequest, withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
  ) {}
}

// MARK: AuthenticationServices

public class ASAuthorization { public var credential: any ASAuthorizationCredential { stub() } }
public protocol ASAuthorizationCredential {}

public class ASAuthorizationAppleIDCredential: ASAuthorizationCredential {
  public var identityToken: Data? { stub() }
  public var authorizationCode: Data? { stub() }
  public var fullName: PersonNameComponents? { stub() }
}

public struct ASAuthorizationError: Error {
  public enum Code { case canceled, failed }
  public var code: Code { stub() }
}

public class ASAuthorizationAppleIDRequest {
  public enum Scope { case fullName, email }
  public var requestedScopes: [Scope]?
  public var nonce: String?
}

public struct SignInWithAppleButton: Primitive {
  public enum Style { case white, black }
  public init(
    onRequest: @escaping (ASAuthorizationAppleIDRequest) -> Void,
    onCompletion: @escaping (Result<ASAuthorization, any Error>) -> Void
  ) {}
}

// MARK: WidgetKit, AppIntents and BackgroundTasks

public protocol TimelineEntry { var date: Date { get } }
public struct TimelineReloadPolicy { public static func after(_ date: Date) -> Self { stub() } }
public struct Timeline<Entry: TimelineEntry> { public init(entries: [Entry], policy: TimelineReloadPolicy) {} }
public struct TimelineProviderContext {}

public protocol AppIntentTimelineProvider {
  associatedtype Entry: TimelineEntry
  associatedtype Intent: WidgetConfigurationIntent
  typealias Context = TimelineProviderContext
  func placeholder(in context: Context) -> Entry
  func snapshot(for configuration: Intent, in context: Context) async -> Entry
  func timeline(for configuration: Intent, in context: Context) async -> Timeline<Entry>
}

@MainActor @preconcurrency public protocol WidgetConfiguration {
  associatedtype Body: WidgetConfiguration
  @MainActor var body: Body { get }
}

extension Never: WidgetConfiguration {}

@MainActor @preconcurrency public protocol Widget {
  associatedtype Body: WidgetConfiguration
  @MainActor var body: Body { get }
  init()
}

public struct AppIntentConfiguration<Intent: WidgetConfigurationIntent, C: View>: WidgetConfiguration {
  public init<P: AppIntentTimelineProvider>(
    kind: String, intent: Intent.Type, provider: P, @ViewBuilder content: @escaping (P.Entry) -> C
  ) where P.Intent == Intent {}
  public var body: Never { stub() }
}

public struct LocalizedStringResource: ExpressibleByStringLiteral, Sendable { public init(stringLiteral: String) {} }
public struct IntentDialog: ExpressibleByStringLiteral, Sendable { public init(stringLiteral: String) {} }
public protocol IntentResult: Sendable {}
public protocol ProvidesDialog {}
public struct DialogResult: IntentResult, ProvidesDialog {}
extension IntentResult where Self == DialogResult {
  public static func result(dialog: IntentDialog) -> DialogResult { stub() }
}

public protocol AppIntent: Sendable {
  associatedtype PerformResult: IntentResult
  static var title: LocalizedStringResource { get }
  func perform() async throws -> PerformResult
  init()
}

extension AppIntent { public typealias Parameter<Value: Sendable> = IntentParameter<Value> }

@propertyWrapper public struct IntentParameter<Value: Sendable>: Sendable {
  public init(title: LocalizedStringResource) {}
  public var wrappedValue: Value {
    get { stub() }
    set {}
  }
}

public protocol WidgetConfigurationIntent: Sendable {
  static var title: LocalizedStringResource { get }
  init()
}

public struct BackgroundTask { public static func appRefresh(_ identifier: String) -> BackgroundTask { stub() } }

public class BGAppRefreshTaskRequest {
  public init(identifier: String) {}
  public var earliestBeginDate: Date?
}

// Apple's class may be used from any thread. This declaration has no state.
public class BGTaskScheduler: @unchecked Sendable {
  public static let shared = BGTaskScheduler()
  public func submit(_ request: BGAppRefreshTaskRequest) throws {}
}

// MARK: Foundation, on Apple's systems

extension FileManager {
  public func containerURL(forSecurityApplicationGroupIdentifier group: String) -> URL? { stub() }
}

extension URL { public static var applicationSupportDirectory: URL { stub() } }
