import ArgumentParser
import Foundation
import MusterKit

struct ProfileCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "profile", abstract: "Show and change your profile, and show that of another user.",
    discussion: """
        musterctl profile
        musterctl profile edit --name "Ana D." --bio "Climbs on Tuesdays."
        musterctl profile of ben
      """,
    subcommands: [ShowProfile.self, EditProfile.self, ShowOtherProfile.self], defaultSubcommand: ShowProfile.self)
}

struct ShowProfile: AccountCommand {
  static let configuration = CommandConfiguration(commandName: "show", abstract: "Show all of your own profile.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.reply { try await account.client.me.get() }
    try console.show(reply) { user in
      let logins = (user.hasPassword ? ["password"] : []) + user.identities.map(\.rawValue)
      return console.lines(
        of: user.fields(at: account.server) + [
          ("Picture", user.pictureUrl?.absoluteString ?? "none"),
          ("Log in with", (logins + (user.email == nil ? [] : ["mailed code"])).joined(separator: ", ")),
          ("Friend requests from", (user.requestsFrom ?? .everyone).rawValue),
          ("Found by", (user.findableBy ?? .everyone).rawValue),
          ("Since", TimeText.here.day(user.createdAt)),
        ])
    }
  }
}

extension User {
  func fields(at server: ServerURL) -> [(name: String, value: String)] {
    var fields = [("Username", username), ("Name", displayName), ("Service", server.description)]
    if let email { fields.append(("E-mail", email + (emailVerified ? "" : " (not verified)"))) }
    if let pendingEmail { fields.append(("New e-mail", "\(pendingEmail) (not verified)")) }
    if let bio { fields.append(("About you", bio)) }
    return fields
  }
}

struct EditProfile: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Change your username, name, text about yourself or e-mail address.",
    discussion: """
      Your old username stays reserved for you for 30 days. A new address takes effect when you follow the link that is \
      mailed there; it needs your password, or a mailed code.

        musterctl profile edit --name "Ana D."
        musterctl profile edit --clear bio
        musterctl profile edit --email ana@example.org
      """)

  enum Field: String, ExpressibleByArgument, CaseIterable {
    case bio
  }

  @Option(help: ArgumentHelp("The new username.", valueName: "username"))
  var username: String?

  @Option(help: ArgumentHelp("The new name that other users see.", valueName: "display name"))
  var name: String?

  @Option(help: ArgumentHelp("A text about yourself.", valueName: "text"))
  var bio: String?

  @Option(help: ArgumentHelp("The new e-mail address.", valueName: "address"))
  var email: String?

  @Option(help: ArgumentHelp("Remove this.", valueName: "field"))
  var clear: [Field] = []

  @OptionGroup var confirmation: Confirmation
  @OptionGroup var options: AccountOptions

  func validate() throws {
    if bio != nil, clear.contains(.bio) { throw ValidationError("The field bio cannot be both set and cleared.") }
    if email == nil, confirmation.code || confirmation.passwordStdin {
      throw ValidationError("Only --email needs --code or --password-stdin.")
    }
  }

  func run(as account: Account, on console: Console) async throws {
    var edit = ProfileEdit(username: username, displayName: name, email: email)
    if let bio { edit.bio = .set(bio) } else if clear.contains(.bio) { edit.bio = .clear }
    guard edit != ProfileEdit() else {
      throw Failure.usage("Specify what to change. See `musterctl profile edit --help`.")
    }
    let old = try await account.client.me.get()
    if email != nil { edit.reauthentication = try await confirmation.proof(of: old, as: account, on: console) }
    let reply = try await account.responses.reply { try await account.client.me.edit(edit) }
    try console.show(reply) { new in
      let names = [("username", old.username, new.username), ("name", old.displayName, new.displayName)]
      var changes = names.filter { $0.1 != $0.2 }.map { "\($0.0): \($0.1) → \($0.2)" }
      // It may be long.
      if old.bio != new.bio { changes.append(new.bio == nil ? "no text about you" : "the text about you") }
      var lines = changes.isEmpty ? [] : ["Changed your profile: \(changes.joined(separator: "; ").safeLine)."]
      if email != nil, let pending = new.pendingEmail {
        lines.append("A mail is on its way to \(pending). Follow its link to make the address yours.".safeLine)
      }
      return lines.isEmpty ? ["Nothing has changed."] : lines
    }
  }
}

struct ShowOtherProfile: AccountCommand {
  static let configuration = CommandConfiguration(commandName: "of", abstract: "Show the profile of another user.")

  @Argument(help: .username, completion: .anyone)
  var user: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let id = try await account.user(named: user).id
    let reply = try await account.responses.reply { try await account.client.users.get(id) }
    try console.show(reply) { console.lines(of: $0.fields) }
  }
}

extension PublicProfile {
  fileprivate var fields: [(name: String, value: String)] {
    var fields = [("Username", username), ("Name", displayName)]
    if let bio { fields.append(("About", bio)) }
    if let pictureUrl { fields.append(("Picture", pictureUrl.absoluteString)) }
    let relation =
      switch friendship {
      case .friends: "friends"
      case .requested: "you have sent a friend request"
      case .requesting: "has sent you a friend request"
      default: "not friends"
      }
    return fields + [("You two", relation), ("Friends in common", "\(mutualFriendCount)"), ("Id", id.description)]
  }
}
