import App
import ArgumentParser
import Foundation

struct ReportsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reports", abstract: "Read and close reports of users, events and visitors.",
    subcommands: [List.self, Picture.self, Close.self])

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List open reports, oldest first, with the reported content as it was at that time.")

    @Flag(help: "Also list closed reports, latest first.")
    var all = false

    @Option(help: "The maximum number of reports.")
    var limit = 100

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func validate() throws {
      guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 100000.") }
    }

    func run() async throws {
      try await withDatabase("muster reports") { database in
        let reports = try await ReportEntry.list(all: all, atMost: limit, in: database)
        if json { return try reports.printJSON() }
        for report in reports { print(report.lines.joined(separator: "\n")) }
      }
    }
  }

  struct Close: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Close a report. It is deleted 90 days later, or as soon as the reported account is deleted.")

    @OptionGroup var report: ReportArgument

    @Option(help: "The decision. Do not name anyone: the note may be kept after their accounts are deleted.")
    var note: String?

    func validate() throws {
      guard note.map(\.unicodeScalars.count) ?? 0 <= Report.maximumText else {
        throw ValidationError("--note must be at most \(Report.maximumText) characters long.")
      }
    }

    func run() async throws {
      try await withDatabase("muster reports") { database in
        guard try await Report.close(report.id, note: note, in: database) else {
          throw Failure("there is no open report \(report.id)")
        }
        print("closed \(report.id)")
      }
    }
  }
}

extension ReportsCommand {
  struct ReportArgument: ParsableArguments {
    @Argument(
      help: "The id of the report, as shown by `list`.",
      transform: { text in
        guard let id = Report.ID(text) else { throw ValidationError("\"\(text)\" must be the id of a report.") }
        return id
      })
    var id: Report.ID
  }

  struct Picture: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Write the reported user's picture, as reported, to stdout (JPEG).")

    @OptionGroup var report: ReportArgument

    func run() async throws {
      try await withDatabase("muster reports") { database in
        guard let picture = try await Report.picture(of: report.id, in: database) else {
          throw Failure("there is no picture in report \(report.id)")
        }
        try FileHandle.standardOutput.write(contentsOf: picture)
      }
    }
  }
}

extension ReportEntry {
  /// For a person: a line about the report, and a line for each text.
  fileprivate var lines: [String] {
    // Users may report any id.
    let subject =
      userId.map { "user \($0), \(owner ?? "no account")" } ?? guestId.map { "visitor \($0)" }
      ?? "event \(eventId ?? "") of \(owner ?? "a deleted account")"
    let sender = linkId.map { "someone on the page of link \($0)" } ?? reporter ?? "a deleted account"
    let closed = closedAt.map { "  closed \($0)" } ?? ""
    var texts = snapshot.sorted { $0.key < $1.key }.map { (name: $0.key, text: $0.value) }
    if hasPicture { texts.append(("picture", "muster reports picture \(id) > picture.jpeg")) }
    if let text { texts.append(("report", text)) }
    if let closingNote { texts.append(("note", closingNote)) }
    return ["\(id)  \(createdAt)  \(reason)  \(subject)  by \(sender)\(closed)"]
      + texts.map { "  \($0.name): \($0.text.escaped)" }
  }
}

extension String {
  /// On one line, and without characters that control the terminal: clients chose the text.
  fileprivate var escaped: String {
    let unsafe: Set<Unicode.GeneralCategory> = [.control, .format, .lineSeparator, .paragraphSeparator]
    return unicodeScalars.map {
      unsafe.contains($0.properties.generalCategory) ? $0.escaped(asASCII: true) : String($0)
    }.joined()
  }
}
