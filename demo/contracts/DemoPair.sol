// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// Calls a token whose functions may return nothing, like Tether's.
library AnyToken {
    function pull(address token, address from, address to, uint256 value) internal {
        _call(token, abi.encodeWithSignature("transferFrom(address,address,uint256)", from, to, value));
    }

    function send(address token, address to, uint256 value) internal {
        _call(token, abi.encodeWithSignature("transfer(address,uint256)", to, value));
    }

    function approve(address token, address spender, uint256 value) internal {
        _call(token, abi.encodeWithSignature("approve(address,uint256)", spender, value));
    }

    function _call(address token, bytes memory call) private {
        (bool ok, bytes memory answer) = token.call(call);
        require(ok && (answer.length == 0 || abi.decode(answer, (bool))), "a token was not moved");
    }
}

interface IBalance {
    function balanceOf(address owner) external view returns (uint256);
}

/// A pool of two tokens in which, after the fee, the product of both balances never falls. Tokens that are sent without a swap and recorded
/// by `sync` stay for good: there are no shares.
contract DemoPair {
    /// In basis points of the input.
    uint256 public constant FEE_BPS = 30;
    uint256 private constant BPS = 10_000;

    address public immutable exchange;
    address public token0;
    address public token1;
    uint112 private reserve0;
    uint112 private reserve1;
    uint32 private changedAt;

    event Swap(address indexed sender, uint256 in0, uint256 in1, uint256 out0, uint256 out1, address indexed to);
    event Sync(uint112 reserve0, uint112 reserve1);

    constructor() {
        exchange = msg.sender;
    }

    /// Not in the constructor: the address of a pair depends on its creation code, which must be the same for all pairs.
    function begin(address token0_, address token1_) external {
        require(msg.sender == exchange && token0 == address(0), "a pair begins once");
        token0 = token0_;
        token1 = token1_;
    }

    function getReserves() external view returns (uint112, uint112, uint32) {
        return (reserve0, reserve1, changedAt);
    }

    /// Pays out the requested amounts for the input since the last call.
    function swap(uint256 out0, uint256 out1, address to) external {
        (uint256 had0, uint256 had1) = (reserve0, reserve1);
        require(out0 < had0 && out1 < had1, "the pair holds too little");
        if (out0 > 0) AnyToken.send(token0, to, out0);
        if (out1 > 0) AnyToken.send(token1, to, out1);
        (uint256 has0, uint256 has1) = _held();
        uint256 in0 = has0 + out0 - had0;
        uint256 in1 = has1 + out1 - had1;
        uint256 product = (has0 * BPS - in0 * FEE_BPS) * (has1 * BPS - in1 * FEE_BPS);
        require(product >= had0 * had1 * BPS * BPS, "too little came in");
        _keep(has0, has1);
        emit Swap(msg.sender, in0, in1, out0, out1, to);
    }

    /// Records the present balances as reserves.
    function sync() external {
        (uint256 has0, uint256 has1) = _held();
        _keep(has0, has1);
    }

    function _held() private view returns (uint256, uint256) {
        return (IBalance(token0).balanceOf(address(this)), IBalance(token1).balanceOf(address(this)));
    }

    function _keep(uint256 has0, uint256 has1) private {
        require(has0 <= type(uint112).max && has1 <= type(uint112).max, "too much for a pair");
        (reserve0, reserve1, changedAt) = (uint112(has0), uint112(has1), uint32(block.timestamp));
        emit Sync(reserve0, reserve1);
    }
}
