/// A page with recorded sessions: blocks of `console` in which each command stands behind a prompt with its user, such
/// as `rosa$ musterctl friends`, above what it printed.
struct Transcript {
  struct Command {
    let user: String
    let line: String
    var output: [String] = []
  }

  enum Part {
    case text(String)
    case session([Command])
  }

  var parts: [Part] = []

  init(_ page: String) {
    var session: [Command]?
    for line in page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if session == nil {
        parts.append(.text(line))
        if line == "```console" { session = [] }
      } else if line == "```" {
        parts += [.session(session ?? []), .text(line)]
        session = nil
      } else if let match = line.wholeMatch(of: /([a-z]+)\$ (.+)/) {
        session?.append(Command(user: String(match.1), line: String(match.2)))
      } else if let last = session?.indices.last {
        session?[last].output.append(line)
      }
    }
  }

  var text: String {
    let lines = parts.flatMap { part -> [String] in
      switch part {
      case .text(let line): [line]
      case .session(let commands): commands.flatMap { ["\($0.user)$ \($0.line)"] + $0.output }
      }
    }
    return lines.joined(separator: "\n")
  }

  /// The page with the outputs of a new run. Outputs that look the same as before stay as they are.
  func updated(from new: Transcript) -> Transcript {
    var page = self
    for (index, part) in parts.enumerated() {
      guard case .session(let old) = part, case .session(let new) = new.parts[index] else { continue }
      page.parts[index] = .session(zip(old, new).map { $0.shape == $1.shape ? $0 : $1 })
    }
    return page
  }

  var commands: [Command] {
    parts.flatMap { part -> [Command] in
      guard case .session(let commands) = part else { return [] }
      return commands
    }
  }
}

extension Transcript.Command {
  /// The output without the parts that differ in each run: times, ids, and the width of columns with times.
  var shape: [String] {
    output.map { line in
      line.replacing(/(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [0-9]{1,2} [A-Z][a-z]{2}(?: [0-9]{4})? [0-9:]{5}/, with: "WHEN")
        .replacing(/[0-9-]{10}T[0-9:]{8}(?:\.[0-9]+)?Z/, with: "TIME")
        .replacing(/[0-9]{4}-[0-9]{2}-[0-9]{2}/, with: "DAY")
        .replacing(/[0-9a-f]{8}-[0-9a-f-]{27}/, with: "UUID")
        .replacing(/(?:http|webcal):\/\/[0-9.:]+\/(?:e|calendars)\/[\w.-]+/, with: "LINK")
        .replacing(/^\s*(?:[0-9a-f]{6}|[0-9a-f]{8})\s\s/, with: "ID ")
        .replacing(/"requestId": "[0-9a-f]+"/, with: "REQUEST")
        .replacing(/Secret +\S{20,}/, with: "SECRET").replacing(/musterctl on [\w.-]+/, with: "HOST")
        .replacing(/\d+ bytes/, with: "SIZE")
        .replacing(/\s+/, with: " ")
    }
  }
}
