//! `EncodingCondition`: a named expression tree over an encoding's fields.
//!
//! In AMD's files, a tree consists of `op type="…"` (operators, and `.fieldderef` for `INST.VOP3.SRC0`), `id
//! val="…"` and `lit val="…"`, each with `ty` > `t base size` next to the arguments. Schema 1.2.0 adds
//! `.notwithin`, which compares a field with each element of a `.cons_array`.

use super::element::{child, text_of};
use super::load::Loader;
use super::model::*;
use crate::diag::nearest;
use crate::tables::CondOp;
use roxmltree::Node;

/// Depth limit; deeper trees are rejected. The published trees nest 9 deep.
const MAX_DEPTH: u32 = 64;

impl Loader {
    pub(super) fn condition(&mut self, node: Node<'_, '_>, fields: &[Field]) -> Condition {
        let name = self.require_text(node, &["ConditionName"]);
        // AMD's files spell it `CondtionExpression`.
        let tree = child(node, "ConditionExpression").or_else(|| child(node, "CondtionExpression"));
        if tree.is_none() {
            self.error(node, format!("condition {name} lacks `ConditionExpression`"));
        }
        let expr = tree
            .and_then(|t| t.children().find(Node::is_element))
            .and_then(|e| self.condition_expr(e, fields, 0));
        Condition { name, expr }
    }

    fn condition_expr(&mut self, node: Node<'_, '_>, fields: &[Field], depth: u32) -> Option<CondExpr> {
        if depth > MAX_DEPTH {
            self.error(node, format!("condition nested deeper than {MAX_DEPTH}"));
            return None;
        }
        let ty = child(node, "ty").and_then(|ty| child(ty, "t")).map(|t| TypeMark {
            base: t.attribute("base").unwrap_or("").to_string(),
            size: t.attribute("size").and_then(|s| s.parse().ok()),
        });
        match node.tag_name().name() {
            "op" => {
                let op = node.attribute("type").unwrap_or("").to_string();
                let nodes: Vec<_> =
                    node.children().filter(|n| n.is_element() && n.tag_name().name() != "ty").collect();
                let deref = op == ".fieldderef";
                if op == ".notwithin" {
                    return self.outside_of(node, &nodes, fields, depth);
                }
                match operator(&op) {
                    Some(op) if arity_fits(op, nodes.len()) => {}
                    None if deref && nodes.len() == 2 => {}
                    None if !deref => {
                        self.error(node, format!("unknown operator `{op}`"));
                        return None;
                    }
                    _ => {
                        self.error(node, format!("operator `{op}` has {} arguments", nodes.len()));
                        return None;
                    }
                }
                if deref {
                    self.known_field(nodes[1], fields);
                    let args = nodes.iter().filter_map(|&n| path(n, depth)).collect();
                    return Some(CondExpr::Op { op, args, ty });
                }
                let args = nodes.iter().filter_map(|&n| self.condition_expr(n, fields, depth + 1)).collect();
                Some(CondExpr::Op { op, args, ty })
            }
            "id" => {
                self.known_field(node, fields);
                Some(CondExpr::Id { name: value_of(node), ty })
            }
            "lit" => {
                let text = value_of(node);
                let parsed = match text.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).ok(),
                    None => text.parse().ok(),
                };
                if parsed.is_none() {
                    self.error(node, format!("`{text}` is not a number"));
                }
                Some(CondExpr::Lit { value: parsed.unwrap_or(0), ty })
            }
            other => {
                self.error(node, format!("unexpected element `{other}` in a condition"));
                None
            }
        }
    }

    /// Builds `.notwithin(field, .cons_array(a, b, …))` as `field != a && field != b && …`.
    fn outside_of(
        &mut self,
        node: Node<'_, '_>,
        args: &[Node<'_, '_>],
        fields: &[Field],
        depth: u32,
    ) -> Option<CondExpr> {
        let [field, list] = args else {
            self.error(node, format!("operator `.notwithin` has {} arguments", args.len()));
            return None;
        };
        if list.attribute("type") != Some(".cons_array") {
            self.error(*list, "`.notwithin` needs a `.cons_array`");
            return None;
        }
        let field = self.condition_expr(*field, fields, depth + 1)?;
        let elements = list.children().filter(|n| n.is_element() && n.tag_name().name() != "ty");
        let op = |op: &str, args| CondExpr::Op { op: op.to_string(), args, ty: None };
        let mut differs = Vec::new();
        for element in elements {
            differs.push(op("!=", vec![field.clone(), self.condition_expr(element, fields, depth + 1)?]));
        }
        let all = differs.into_iter().reduce(|a, b| op("&&", vec![a, b]));
        if all.is_none() {
            self.error(*list, "an empty `.cons_array`");
        }
        all
    }

    fn known_field(&mut self, node: Node<'_, '_>, fields: &[Field]) {
        let name = value_of(node);
        if fields.iter().all(|f| f.name != name) {
            self.error(node, format!("the condition names `{name}`, which is not a field"));
            if let Some(near) = nearest(&name, fields.iter().map(|f| f.name.as_str())) {
                self.help(format!("did you mean `{near}`?"));
            }
        }
    }
}

/// Builds `INST.VOP3.SRC0` as a tree of `.fieldderef`. Only its last name is used, which the loader has
/// checked.
fn path(node: Node<'_, '_>, depth: u32) -> Option<CondExpr> {
    if depth > MAX_DEPTH {
        return None;
    }
    match node.tag_name().name() {
        "op" => Some(CondExpr::Op {
            op: node.attribute("type").unwrap_or("").to_string(),
            args: node
                .children()
                .filter(|n| n.is_element() && n.tag_name().name() != "ty")
                .filter_map(|n| path(n, depth + 1))
                .collect(),
            ty: None,
        }),
        _ => Some(CondExpr::Id { name: value_of(node), ty: None }),
    }
}

fn value_of(node: Node<'_, '_>) -> String {
    node.attribute("val").map_or_else(|| text_of(node), |v| v.trim().to_string())
}

fn arity_fits(op: CondOp, count: usize) -> bool {
    match op {
        CondOp::Not => count == 1,
        _ => count == 2,
    }
}

/// Looks up the operator of a condition tree by its XML spelling.
pub(super) fn operator(text: &str) -> Option<CondOp> {
    Some(match text {
        "==" => CondOp::Eq,
        "!=" => CondOp::Ne,
        "<" => CondOp::Lt,
        "<=" => CondOp::Le,
        ">" => CondOp::Gt,
        ">=" => CondOp::Ge,
        "&&" => CondOp::And,
        "||" => CondOp::Or,
        "!" => CondOp::Not,
        "+" => CondOp::Add,
        "-" => CondOp::Sub,
        "*" => CondOp::Mul,
        "/" => CondOp::Div,
        "%" => CondOp::Mod,
        "&" => CondOp::BitAnd,
        "|" => CondOp::BitOr,
        "^" => CondOp::BitXor,
        "<<" => CondOp::Shl,
        ">>" => CondOp::Shr,
        _ => return None,
    })
}
