/// A table that fits a terminal. Its texts may be in any script.
struct Table {
  struct Column {
    let title: String
    /// The treatment of the column in a narrow terminal.
    var fitting = Fitting.fixed

    init(_ title: String, _ fitting: Fitting = .fixed) {
      self.title = title
      self.fitting = fitting
    }
  }

  enum Fitting {
    /// Is never shortened, except where nothing else helps.
    case fixed
    /// Is shortened, the widest first.
    case flexible
    /// Is shortened like a flexible one, and then left out, the last first.
    case optional
    /// Goes to a line of its own below the row before anything is shortened. For values that are useless when shortened,
    /// such as URLs.
    case ownLine
  }

  struct Cell {
    let text: String
    let style: TextStyle

    /// - Parameter text: from anywhere; it is made safe for the terminal.
    init(_ text: String, _ style: TextStyle = .plain) {
      self.text = text.safeLine
      self.style = style
    }
  }

  private static let gap = 2
  /// The spaces before a cell on a line of its own.
  private static let indent = 2
  /// A flexible column becomes no narrower while another column can be left out.
  private static let comfortable = 20

  let columns: [Column]
  let rows: [[Cell]]

  init(_ columns: [Column], rows: [[Cell]]) {
    self.columns = columns
    self.rows = rows
  }

  /// The lines of the table, with its titles first.
  ///
  /// - Parameter limit: the columns of the terminal; nil for no limit.
  func lines(within limit: Int?, isColored: Bool) -> [String] {
    let limit = limit ?? .max
    let own = Table.total(columns.indices.map { ($0, width(of: $0)) }) > limit ? columns.indices.filter(isOwnLine) : []
    let shown = layout(of: columns.indices.filter { !own.contains($0) }, within: limit)
    func line(_ row: [Cell]) -> String {
      var line = ""
      var missing = 0
      for (column, width) in shown {
        let text = DisplayWidth.fit(row[column].text, within: width)
        line += String(repeating: " ", count: missing)
        line += isColored ? row[column].style.applied(to: text) : text
        missing = (text.isEmpty ? width : width - DisplayWidth.of(text)) + Table.gap
      }
      return line.trimmingTrailingSpaces
    }
    func ownLine(_ cell: Cell) -> String {
      let indent = min(Table.indent, limit - 1)
      let text = DisplayWidth.fit(cell.text, within: limit - indent)
      return String(repeating: " ", count: indent) + (isColored ? cell.style.applied(to: text) : text)
    }
    let titles = columns.map { Cell($0.title, .faint) }
    return [line(titles)] + rows.flatMap { row in [line(row)] + own.map { ownLine(row[$0]) } }
  }

  private func isOwnLine(_ column: Int) -> Bool { columns[column].fitting == .ownLine }

  /// The columns that are shown, with their widths.
  private func layout(of columns: [Int], within limit: Int) -> [(column: Int, width: Int)] {
    func isFlexible(_ column: Int) -> Bool { self.columns[column].fitting != .fixed }
    var kept = columns
    while true {
      var shown = kept.map { (column: $0, width: width(of: $0)) }
      Table.shrink(&shown, to: limit, minimum: Table.comfortable, where: isFlexible)
      if Table.total(shown) <= limit { return shown }
      if let last = kept.lastIndex(where: { self.columns[$0].fitting == .optional }) {
        // The others get its place.
        kept.remove(at: last)
        continue
      }
      Table.shrink(&shown, to: limit, minimum: 4, where: isFlexible)
      Table.shrink(&shown, to: limit, minimum: 1) { _ in true }
      while Table.total(shown) > limit, shown.count > 1 { shown.removeLast() }
      return shown
    }
  }

  private func width(of column: Int) -> Int {
    rows.reduce(DisplayWidth.of(columns[column].title)) { max($0, DisplayWidth.of($1[column].text)) }
  }

  private static func total(_ shown: [(column: Int, width: Int)]) -> Int {
    shown.reduce(0) { $0 + $1.width } + gap * max(shown.count - 1, 0)
  }

  /// Makes the widest column narrower until the table fits or no column can give.
  private static func shrink(
    _ shown: inout [(column: Int, width: Int)], to limit: Int, minimum: Int, where mayShrink: (Int) -> Bool
  ) {
    while total(shown) > limit {
      let candidates = shown.indices.filter { mayShrink(shown[$0].column) && shown[$0].width > minimum }
      guard let widest = candidates.max(by: { shown[$0].width < shown[$1].width }) else { return }
      shown[widest].width -= 1
    }
  }
}
