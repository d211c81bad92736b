import Crypto
import Foundation
import HTML
import HTTPServer
import Mustache

/// The page of a share link, and a visitor's own page. `share.mustache` uses the names of these properties. It has no
/// scripts, and needs nothing but itself.
///
/// Mustache looks for a property that is nil in the outer objects as well, so no optional name of an inner object may be
/// a name of an outer one.
struct SharePage: Sendable {
  let title: String
  var text = ""
  /// A list below the text.
  var points: [String] = []
  /// See ``EventFacts``.
  var event: [String: any Sendable]?
  var form: AnswerForm?
  var visitor: Visitor?
  /// The words on the page's only button, which sends a form to the page's own URL.
  var button: String?
  /// The action of the button; nil for an empty form.
  var act: String?
  /// The URL of the visitor's page, to return to.
  var back: String?
  var report: ReportForm?
  /// The URL of the form that reports the event.
  var reportURL: String?

  /// A visitor's actions besides answering.
  struct Visitor: Sendable {
    let name: String
    let calendar: String?
    /// Whether the reader has shown that they read the address's mail.
    let mayConfirm: Bool
    /// Whether the gate held back the last mail to the address.
    let isHeld: Bool
    let mustConfirm: Bool
    /// When the answer is deleted; nil if it is not.
    let deadline: String?
    /// How often a mail was asked for. The form to ask again sends it, so that a form that is sent twice asks once.
    let mailsAsked: Int
    let mayWithdraw: Bool
    let maySubscribe: Bool
    let isUnsubscribed: Bool
    /// Days for which the event stays in the archive; nil if it is kept.
    let eventRetention: Int?
  }

  static let unknown = SharePage(
    title: "This link does not work",
    text: "It may be incomplete, or a host has revoked it. Ask a host for another one.")
  static let expired = SharePage(
    title: "This link has expired", text: "Ask a host for another one if you want to see the event.")
  static let erased = SharePage(
    title: "Your data has been erased", text: "The hosts no longer have your answer. You can close this page.")
  static let notMine = SharePage(
    title: "The answer has been erased", text: "The hosts no longer have it. You can close this page.")
  /// Asks before erasing a visitor's data, because that cannot be undone.
  ///
  /// - Parameter token: the token in the URL of the visitor's page.
  static func erasing(_ token: String) -> SharePage {
    SharePage(
      title: "Erase your data?",
      text: "The hosts will no longer have your answer, and your page will no longer exist. This cannot be undone.",
      button: "Erase my data for good", act: "erase", back: "../g/\(token)")
  }

  static let unsubscribed = SharePage(
    title: "You will get no more e-mails about this event", text: "Your answer stays. You can close this page.")
  static let unsubscribing = SharePage(
    title: "E-mails about this event", text: "Your answer stays.", button: "Stop sending me e-mails")

  static let optingOut = SharePage(
    title: "E-mails to this address",
    text: "Muster will never again write to this address because someone else has typed it.",
    button: "Never write to this address again")
  static let optedOut = SharePage(
    title: "We will not write to this address again",
    text: "If you want to answer an invitation with this address, allow e-mails again. You can close this page.",
    button: "Allow e-mails again", act: "allow")
  static let allowed = SharePage(
    title: "We may write to this address again", text: "You can close this page.")
  static let foreign = SharePage(
    title: "This did not come from our page", text: "Open the link that you were given, and send the form there.")

  /// The policy for browsers: nothing may be loaded or run, the page's own style is the only one, and forms go to this
  /// service.
  static let contentSecurityPolicy =
    "default-src 'none'; style-src 'sha256-\(styleDigest)'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

  private static let styleDigest = Data(SHA256.hash(data: Data(Resources.shareStyle.utf8))).base64EncodedString()
  private static let template = Result { try MustacheTemplate.html(Resources.shareTemplate) }

  func html() throws -> ByteBuffer {
    let context: [String: Any] = ["page": contents, "style": Resources.shareStyle]
    return ByteBuffer(string: try Self.template.get().render(context))
  }

  /// Dictionaries, in which a name that is nil is absent, so that Mustache takes it for false.
  private var contents: [String: Any] {
    let isRefused = form.map { !$0.errors.isEmpty } ?? false
    var page: [String: Any] = ["title": title, "headTitle": isRefused ? "Error: \(title)" : title, "text": text]
    if !points.isEmpty { page["list"] = ["points": points] }
    page["event"] = event.map { $0 as [String: Any] }
    page["form"] = form?.contents
    page["visitor"] = visitor?.contents
    page["only"] = button
    page["act"] = act
    page["back"] = back
    page["report"] = report?.contents
    page["reportURL"] = reportURL
    return page
  }
}

extension SharePage.Visitor {
  fileprivate var contents: [String: Any] {
    var members: [String: Any] = [
      "visitorName": name.withoutDirectionControls, "mayConfirm": mayConfirm, "mustConfirm": mustConfirm,
      "isHeld": isHeld, "mailsAsked": "\(mailsAsked)", "mayWithdraw": mayWithdraw, "maySubscribe": maySubscribe,
      "isUnsubscribed": isUnsubscribed,
    ]
    members["calendar"] = calendar
    members["deadline"] = deadline
    members["eventRetention"] = eventRetention.map { "\($0)" }
    return members
  }
}

extension Response {
  /// A page for people without the app. Neither caches nor search engines keep it.
  static func page(_ page: SharePage, _ status: HTTPResponse.Status = .ok) throws -> Response {
    Response(
      status: status,
      headers: [
        // After the browser's Back, the form has a new token, so that two people can answer on one phone.
        .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
        .contentSecurityPolicy: SharePage.contentSecurityPolicy, HTTPField.Name("X-Robots-Tag")!: "noindex",
      ],
      body: ResponseBody(try page.html()))
  }

  /// Leads from one page to another one, so that reloading sends no form again. The path is relative, and so leads to
  /// where the reader's browser is, whatever name and path a proxy has for this service.
  static func toPage(_ token: String) -> Response {
    Response(status: .seeOther, headers: [.location: "../g/\(token)", .cacheControl: "no-store"])
  }
}
