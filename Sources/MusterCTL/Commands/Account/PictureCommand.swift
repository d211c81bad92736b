import ArgumentParser
import Foundation
import MusterKit

struct PictureCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "picture", abstract: "Show, set or remove your picture.",
    discussion: """
      Anyone who has the URL of a picture sees it.

        musterctl picture set ana.jpg
        curl https://example.com/ana.png | musterctl picture set -
        musterctl picture remove
      """,
    subcommands: [ShowPicture.self, SetPicture.self, RemovePicture.self], defaultSubcommand: ShowPicture.self)
}

struct ShowPicture: AccountCommand {
  static let configuration = CommandConfiguration(commandName: "show", abstract: "Print the URL of your picture.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.reply { try await account.client.me.get() }
    guard reply.value.pictureUrl != nil || console.printsJSON else {
      return console.note("You have no picture. `musterctl picture set FILE` sets one.")
    }
    try console.show(reply) { $0.pictureUrl?.absoluteString ?? "" }
  }
}

struct SetPicture: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Set your picture from a file, or from stdin.",
    discussion: """
      A JPEG, PNG, WebP or HEIC of at most 2 MiB and 4096 pixels a side. The service keeps no metadata, such as the \
      place where the picture was taken.
      """)

  /// Bytes. The service takes no more.
  private static let limit = 2 << 20

  @Argument(help: "The file; - for stdin.", completion: .file())
  var file: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let name = file == "-" ? "The picture on stdin" : "\"\(file)\""
    let data = try InputFile.data(at: file, limit: SetPicture.limit)
    guard !data.isEmpty else { throw Failure.refused("\(name) is empty. Use a JPEG, PNG, WebP or HEIC.") }
    guard data.count <= SetPicture.limit else {
      throw Failure.refused("\(name) has more than 2 MiB. Make it smaller first.")
    }
    do {
      let reply = try await account.responses.reply {
        try await account.client.me.setPicture(data, contentType: "application/octet-stream")
      }
      try console.show(reply) { "Your picture is set: \($0.pictureUrl?.absoluteString ?? "")" }
    } catch MusterError.refused(let problem) where problem.type == .unsupportedMediaType {
      throw Failure(
        status: .refused,
        description:
          "\(name) cannot be read as a picture. Use a JPEG, PNG, WebP or HEIC of at most 4096 pixels a side.",
        problem: problem)
    }
  }
}

struct RemovePicture: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove your picture.",
    discussion: "Asks first. Without a terminal, --yes is required.")

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    try Prompt.confirm("Remove your picture?", isConfirmed: yes, refusal: "Nothing was removed.")
    let reply = try await account.responses.reply { try await account.client.me.removePicture() }
    try console.show(reply) { "You have no picture now." }
  }
}
