import ArgumentParser
import Foundation
import MusterKit

struct ExportCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Save everything that Muster holds about you, as JSON.",
    discussion: """
      Only you can read the file. Asks before it replaces one; without a terminal, --yes is then required.

        musterctl export muster-export.json
        musterctl export - | jq .events
      """)

  @Argument(help: "The file; - for stdout.", completion: .file(extensions: ["json"]))
  var file: String

  @Flag(help: "Replace the file if it exists, without asking.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    guard file != "-" else {
      let data = try await account.client.me.export()
      return console.say(JSONText.of(try JSONDecoder.muster().decode(JSONValue.self, from: data)))
    }
    // The service allows few exports an hour. So everything that can fail here comes first.
    let output = try OutputFile(at: file)
    if output.exists {
      try Prompt.confirm("Replace \"\(file.safeLine)\"?", isConfirmed: yes, refusal: "Nothing was replaced.")
    }
    let data = try await account.client.me.export()
    try output.write(data)
    try console.show(Reply(value: (), json: .object([:]))) { "Saved your data in \"\(file)\": \(data.count) bytes." }
  }
}
